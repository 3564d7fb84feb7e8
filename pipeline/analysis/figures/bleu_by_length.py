"""BLEU by sentence length (Multi-channel Encoder, Figure 3)."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from pipeline.analysis.figures.figure import Drawing, Figure, curve_style, new_figure
from pipeline.analysis.names import DecodingName, MetricName, ScoredSplit, SystemName
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView, ScoredSplits
from pipeline.core.artifacts import Encoded, Product
from pipeline.core.schema import Count, CountOrNone, Seed
from pipeline.metrics import metric_named
from pipeline.metrics.metric import bootstrap_interval

FEWEST = 20
"""A point of fewer sentences is left out."""


class BleuByLength(Figure):
    """BLEU of the sentences longer than some length, of a random sample of the test sets."""

    kind: Literal["bleu_by_length"]
    systems: list[SystemName] = Field(min_length=1, description="A curve each")
    splits: list[ScoredSplit] = Field(min_length=1, description="Test sets that are sampled")
    decoding: DecodingName = Field(description="Named decoding of the paper that owns the systems")
    metric: MetricName = Field(description="Which BLEU of the score files")
    longer_than: list[CountOrNone] = Field(min_length=1, description="Source words")
    sentences: Count = Field(description="Sentences sampled; all where there are fewer")
    seed: Seed = Field(default=1, description="Seed of the sample")

    def needs(self, view: PaperView) -> Iterator[Product]:
        yield Encoded(view.experiment.stand_in(self.dataset))
        for system in self.systems:
            for run in view.runs(system, self.dataset):
                yield from view.scores(run, self.scored, [self.decoding])

    @property
    def scored(self) -> ScoredSplits:
        """Return metric and splits that are read."""
        split = self.splits[0] if len(self.splits) == 1 else self.splits
        return ScoredSplits(metric=self.metric, dataset=self.dataset, split=split)

    def draw(self, view: PaperView) -> Drawing:
        """Draw a curve for each system: at each length the BLEU of all longer sentences as one set."""
        folders = RunFolders(view)
        lengths = folders.source_lengths(view.experiment.stand_in(self.dataset), self.splits)
        chosen = self.sampled(len(lengths))
        kept = {words: chosen[lengths[chosen] > words] for words in self.longer_than}
        shown = {words: indices for words, indices in kept.items() if len(indices) >= FEWEST}
        picture = new_figure(5, 3.6)
        axes = picture.subplots()
        rows: list[dict[str, Any]] = []
        for number, system in enumerate(self.systems):
            points = [self.interval(folders, system, indices) for indices in shown.values()]
            owner, name = view.experiment.locate(system, view.paper)
            label = name if owner == view.paper else system
            scores = [point["bleu"] for point in points]
            axes.plot(list(shown), scores, label=label, linewidth=1.2, **curve_style(number))
            rows += [
                {"system": system, "longer_than": words, "sentences": len(indices), **point}
                for (words, indices), point in zip(shown.items(), points, strict=True)
            ]
        axes.set_xticks(list(shown))
        axes.set(xlabel="source sentences longer than (words)", ylabel="BLEU")
        axes.legend()
        return Drawing(picture, rows, facts(kept, len(chosen), len(lengths)))

    def sampled(self, total: int) -> np.ndarray:
        """Draw the indices of the sentences in the sample, in rising order."""
        generator = np.random.default_rng(self.seed)
        return np.sort(generator.choice(total, min(total, self.sentences), replace=False))

    def interval(self, folders: RunFolders, system: str, indices: np.ndarray) -> dict[str, float]:
        """Return BLEU of some sentences and its interval, each averaged over seeds."""
        by_seed = folders.statistics(folders.view.runs(system, self.dataset), self.scored, [self.decoding])
        total = metric_named(self.metric).total
        found = [bootstrap_interval(np.concatenate(rows)[indices], total) for rows in by_seed]
        names = {"bleu": "value", "low": "low", "high": "high"}
        return {name: float(np.mean([getattr(one, key) for one in found])) for name, key in names.items()}


def facts(kept: dict[int, np.ndarray], sample: int, total: int) -> str:
    """Describe the sample for the caption."""
    counts = ", ".join(f"{len(indices)} longer than {words}" for words, indices in kept.items())
    left_out = f"Points of fewer than {FEWEST} sentences are left out."
    return f"{sample} of {total} sentences drawn at random: {counts}. {left_out}"

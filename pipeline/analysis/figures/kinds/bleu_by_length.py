"""Multi-channel Encoder, Figure 3: BLEU of the sentences longer than some length."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from pydantic import Field, NonNegativeInt

from pipeline.analysis.figures.figure import Drawing, Figure
from pipeline.analysis.lengths import source_lengths
from pipeline.analysis.names import DecodingName, MetricName, SystemName
from pipeline.analysis.picture import curve_style, new_figure
from pipeline.analysis.scored import ScoredSplit, ScoredSplits
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Encoded, Product, RunId, Score
from pipeline.core.schema import Count
from pipeline.metrics import metric_named
from pipeline.metrics.statistics.score_file import read_statistics
from pipeline.metrics.statistics.significance import bootstrap_interval

FEWEST = 20
"""Sentences without which a score says nothing; a point of fewer is left out."""


class BleuByLength(Figure):
    """BLEU of the sentences longer than some length, of a random sample of the test sets."""

    kind: Literal["bleu_by_length"]
    systems: list[SystemName] = Field(min_length=1, description="A curve each")
    splits: list[ScoredSplit] = Field(min_length=1, description="Test sets that are sampled")
    decoding: DecodingName = Field(description="Named decoding of the paper that owns the systems")
    metric: MetricName = Field(description="Which BLEU of the score files")
    longer_than: list[NonNegativeInt] = Field(min_length=1, description="Source words")
    sentences: Count = Field(description="Sentences sampled; all where there are fewer")
    seed: NonNegativeInt = Field(default=1, description="Seed of the sample")

    def needs(self, view: PaperView) -> Iterator[Product]:
        yield Encoded(view.experiment.stand_in(self.dataset))
        for system in self.systems:
            for run in view.runs(system, self.dataset):
                yield from self.scores(view, run)

    def scores(self, view: PaperView, run: RunId) -> list[Score]:
        """Of each split."""
        split = self.splits[0] if len(self.splits) == 1 else self.splits
        return view.scores(run, ScoredSplits(metric=self.metric, dataset=self.dataset, split=split), [self.decoding])

    def draw(self, view: PaperView) -> Drawing:
        """A curve a system, a point a length; BLEU of all sentences that are longer, as one set."""
        lengths = source_lengths(view.layout.corpus(view.experiment.stand_in(self.dataset)), self.splits)
        chosen = self.sampled(len(lengths))
        kept = {words: chosen[lengths[chosen] > words] for words in self.longer_than}
        shown = {words: indices for words, indices in kept.items() if len(indices) >= FEWEST}
        picture = new_figure(5, 3.6)
        axes = picture.subplots()
        rows: list[dict[str, Any]] = []
        for number, system in enumerate(self.systems):
            points = [self.measured(view, system, indices) for indices in shown.values()]
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
        """Numbers of the sentences in the sample, in rising order."""
        generator = np.random.default_rng(self.seed)
        return np.sort(generator.choice(total, min(total, self.sentences), replace=False))

    def measured(self, view: PaperView, system: str, indices: np.ndarray) -> dict[str, float]:
        """BLEU and its interval, both the mean over seeds."""
        found = []
        for run in view.runs(system, self.dataset):
            paths = [view.layout.path(score) for score in self.scores(view, run)]
            rows = np.concatenate([read_statistics(path, self.metric) for path in paths])
            found.append(bootstrap_interval(rows[indices], metric_named(self.metric).total))
        names = {"bleu": "value", "low": "low", "high": "high"}
        return {name: float(np.mean([getattr(one, key) for one in found])) for name, key in names.items()}


def facts(kept: dict[int, np.ndarray], sample: int, total: int) -> str:
    counts = ", ".join(f"{len(indices)} longer than {words}" for words, indices in kept.items())
    left_out = f"Points of fewer than {FEWEST} sentences are left out."
    return f"{sample} of {total} sentences drawn at random: {counts}. {left_out}"

"""Figures of curves: losses and branch weights over a training, and BLEU by sentence length."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Literal

import numpy as np
from pydantic import Field

from pipeline.analysis.evidence import FEWEST_SENTENCES
from pipeline.analysis.figures.figure import COLOURS, GREY, Drawing, Figure, curve_style, line_style, new_figure
from pipeline.analysis.reference_types import DecodingName, MetricName, ScoredSplit, SystemName
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView, ScoredSplits
from pipeline.core.artifacts import Artifact, Encoded
from pipeline.core.errors import count_of
from pipeline.core.schema import Count, CountOrNone, Seed
from pipeline.metrics import metric_named
from pipeline.metrics.metric import bootstrap_interval
from pipeline.models.transformer.settings import AnyTransformerConfig

TITLES = {"kappa": "concatenation weights, κ", "alpha": "addition weights, α"}


class LossCurves(Figure):
    """Dev loss against training loss, one point per validation (Weighted Transformer, Figure 2)."""

    kind: Literal["loss_curves"]
    systems: list[SystemName] = Field(min_length=1, description="One curve each")

    def needs(self, view: PaperView) -> Iterator[Artifact]:
        yield from view.trained(self.systems, self.dataset)

    def draw(self, view: PaperView) -> Drawing:
        """Draw a curve for each system and seed, in the order of training from left to right."""
        picture, folders = new_figure(5, 4), RunFolders(view)
        axes = picture.subplots()
        rows: list[dict[str, Any]] = []
        steps = []
        for number, system in enumerate(self.systems):
            for run in (runs := view.runs(system, self.dataset)):
                curve = folders.fit_curve(run)
                first = run == runs[0]
                label = f"{label_of(view, system)} ({count_of(int(curve.steps[-1]), 'step')})" if first else None
                axes.plot(
                    curve.train, curve.dev, alpha=1 if first else 0.5, label=label, linewidth=1.2, **curve_style(number)
                )
                rows += [
                    {"system": system, "seed": run.seed, "step": int(step), "train_loss": train, "dev_loss": dev}
                    for step, train, dev in zip(curve.steps, curve.train.tolist(), curve.dev.tolist(), strict=True)
                ]
            steps.append(f"{system} {curve.steps[-1]}")
        axes.invert_xaxis()
        axes.set(xlabel="loss on training data (nats per symbol)", ylabel="development loss (nats per symbol)")
        axes.legend()
        facts = (
            f"Training goes from left to right. Steps: {', '.join(steps)}; {count_of(len(rows), 'validation')} drawn."
            f"{on_further_seeds(rows)}"
        )
        return Drawing(picture, rows, facts)


def label_of(view: PaperView, system: str) -> str:
    """Return the paper's own words for a system; those of the Transformer's table are only symbols."""
    description = view.experiment.system_entry(view.paper, system).description
    owner, _ = view.experiment.locate(system, view.paper)
    return f"Transformer, {description}" if owner == "attention" else description


class DevCurves(Figure):
    """Dev loss over training steps (Cold Fusion, Figure 2)."""

    kind: Literal["dev_curves"]
    systems: list[SystemName] = Field(
        min_length=1, description="One curve each; the others are compared with the first"
    )

    def needs(self, view: PaperView) -> Iterator[Artifact]:
        yield from view.trained(self.systems, self.dataset)

    def draw(self, view: PaperView) -> Drawing:
        """Draw a curve for each system and seed, and a dotted line at the best loss of the first of all."""
        picture, folders = new_figure(5, 3.6), RunFolders(view)
        axes = picture.subplots()
        rows: list[dict[str, Any]] = []
        reached: list[str] = []
        first_run = view.runs(self.systems[0], self.dataset)[0]
        level = float(folders.loss_curve(first_run).dev.min())
        for number, system in enumerate(self.systems):
            label = view.experiment.system_entry(view.paper, system).description
            for run in (runs := view.runs(system, self.dataset)):
                curve = folders.loss_curve(run)
                first = run == runs[0]
                style = curve_style(number, marker_size=3) | {"alpha": 1 if first else 0.5, "linewidth": 1.2}
                axes.plot(curve.steps, curve.dev, label=label if first else None, **style)
                rows += [
                    {"system": system, "seed": run.seed, "step": int(step), "dev_loss": dev}
                    for step, dev in zip(curve.steps, curve.dev.tolist(), strict=True)
                ]
                if first:
                    steps = curve.steps_to(level)
                    reached.append(
                        f"{label} after {count_of(round(steps), 'step')}" if isfinite(steps) else f"not by {label}"
                    )
        axes.axhline(level, color=COLOURS[0], linestyle=":", linewidth=1)
        axes.set(xlabel="steps", ylabel="development cross-entropy (nats per symbol)")
        axes.legend()
        facts = (
            f"The dotted line is the lowest loss of the first system's first seed, {level:.3f} nats, reached by "
            f"{'; '.join(reached)}.{on_further_seeds(rows)}"
        )
        return Drawing(picture, rows, facts)


def on_further_seeds(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what a caption says about curves of other seeds than the first; empty if there are none."""
    return " Paler curves are further seeds." if len({row["seed"] for row in rows}) > 1 else ""


class BranchWeights(Figure):
    """kappa and alpha of one encoder layer over a training (Weighted Transformer, Figure 3)."""

    kind: Literal["branch_weights"]
    system: SystemName
    layer: Count = Field(description="Encoder layer; the last one if there are fewer")
    window: Count = Field(description="Entries of the progress log that the mean filter spans")

    def needs(self, view: PaperView) -> Iterator[Artifact]:
        """Yield the training of the first seed."""
        yield next(view.trained([self.system], self.dataset))

    def draw(self, view: PaperView) -> Drawing:
        """Draw the weights of the first seed, smoothed by a mean filter."""
        run = view.runs(self.system, self.dataset)[0]
        curves, model = RunFolders(view).branch_curves(run, self.layer), view.experiment.run_spec(run).model
        assert isinstance(model, AnyTransformerConfig), "it has branches"
        picture = new_figure(4.2 * len(curves), 3.4)
        panels = picture.subplots(1, len(curves), sharey=True, squeeze=False)[0]
        rows: list[dict[str, Any]] = []
        for axes, curve in zip(panels, curves, strict=True):
            smooth = mean_filter(curve.weights, self.window)
            branches = smooth.shape[1]
            for branch in range(branches):
                axes.plot(curve.steps, smooth[:, branch], linewidth=1.3, label=str(branch + 1), **line_style(branch))
            axes.axhline(1 / branches, color=GREY, linestyle=(0, (4, 3)), linewidth=1.5, zorder=1.5)
            axes.set_title(TITLES[curve.name], fontsize=9)
            axes.set(xlabel="training step")
            axes.locator_params(axis="x", nbins=5)  # more numbers of five digits would touch
            pairs = zip(curve.weights.T.tolist(), smooth.T.tolist(), strict=True)
            rows += [
                {"weight": curve.name, "branch": number, "step": int(step), "value": raw, "smoothed": filtered}
                for number, pair in enumerate(pairs, start=1)
                for step, raw, filtered in zip(curve.steps, *pair, strict=True)
            ]
        panels[0].set_ylabel("weight (sums to 1 over branches)")
        panels[0].set_ylim(bottom=0)  # only now, because it fixes the upper limit of both panels
        panels[-1].legend(title="branch", loc="center left", bbox_to_anchor=(1, 0.5))
        facts = (
            f"Encoder layer {min(self.layer, model.num_layers)} of {model.num_layers}, {branches} branches, "
            f"seed {run.seed}. The filter spans {count_of(self.window, 'entry', 'entries')} of the log, "
            f"{count_of(self.window * int(curves[0].steps[1] - curves[0].steps[0]), 'step')}."
        )
        return Drawing(picture, rows, facts)


def mean_filter(values: np.ndarray, window: int) -> np.ndarray:
    """Return the centred running mean over the first axis; near the ends, over the entries that exist.

    Args:
        values: Shape (steps, M).
        window: Number of entries that the filter spans.
    """
    centred = slice((window - 1) // 2, (window - 1) // 2 + len(values))
    counts, *sums = (np.convolve(column, np.ones(window))[centred] for column in (np.ones(len(values)), *values.T))
    return np.stack(sums, axis=1) / counts[:, None]


class BleuByLength(Figure):
    """BLEU of the sentences longer than some length, of a random sample of the test sets."""

    kind: Literal["bleu_by_length"]
    systems: list[SystemName] = Field(min_length=1, description="One curve each")
    splits: list[ScoredSplit] = Field(min_length=1, description="Test sets that are sampled")
    decoding: DecodingName = Field(description="Named decoding of the paper that owns the systems")
    metric: MetricName = Field(description="BLEU of the score files that is drawn")
    longer_than: list[CountOrNone] = Field(
        min_length=1, description="The sentences of each point have more source words than this"
    )
    sentences: Count = Field(description="Number of sentences sampled; all if there are fewer")
    seed: Seed = Field(default=1, description="Seed of the sample")

    def needs(self, view: PaperView) -> Iterator[Artifact]:
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
        shown = {words: indices for words, indices in kept.items() if len(indices) >= FEWEST_SENTENCES}
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
        return Drawing(picture, rows, sample_facts(kept, len(chosen), len(lengths)))

    def sampled(self, total: int) -> np.ndarray:
        """Draw the indices of the sentences in the sample, in rising order."""
        generator = np.random.default_rng(self.seed)
        return np.sort(generator.choice(total, min(total, self.sentences), replace=False))

    def interval(self, folders: RunFolders, system: str, indices: np.ndarray) -> dict[str, float]:
        """Return BLEU of the sentences `indices` of all test sets and its interval, each averaged over seeds."""
        by_seed = folders.statistics(folders.view.runs(system, self.dataset), self.scored, [self.decoding])
        total = metric_named(self.metric).total
        found = [bootstrap_interval(np.concatenate(rows)[indices], total) for rows in by_seed]
        names = {"bleu": "value", "low": "low", "high": "high"}
        return {name: float(np.mean([getattr(interval, key) for interval in found])) for name, key in names.items()}


def sample_facts(kept: dict[int, np.ndarray], sample: int, total: int) -> str:
    """Return the caption's facts about the sample.

    Args:
        kept: Indices of the sampled sentences that are longer than each length.
        sample: Number of sentences in the sample.
        total: Number of sentences in the test sets.
    """
    counts = ", ".join(f"{len(indices)} longer than {words}" for words, indices in kept.items())
    left_out = f"Points of fewer than {FEWEST_SENTENCES} sentences are left out."
    return f"{sample} of {count_of(total, 'sentence')} drawn at random: {counts}. {left_out}"

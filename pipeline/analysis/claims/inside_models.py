"""Claims about quantities inside a trained model: branch weights of a Transformer, gates between channels."""

from collections.abc import Iterator
from statistics import fmean
from typing import Annotated, Literal

from pydantic import Field

from pipeline.analysis.claims.claim import RESAMPLED, Claim, Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.evidence import Sample, bootstrap_sample, contrast, within_bounds
from pipeline.analysis.reference_types import DatasetName, SystemName
from pipeline.analysis.run_folders import NotRun
from pipeline.analysis.training_curves import BranchCurve, Stack, System
from pipeline.analysis.view import PaperView, Scores
from pipeline.core.artifacts import Artifact, Gates
from pipeline.core.schema import Count, Number
from pipeline.metrics.metric import mean_of_totals

WordKind = Literal["names", "rare_names", "idioms", "function_words"]
"""Kinds of source words that pipeline/probes/gate_values.py distinguishes."""

FEWEST_WORDS = 20
"""A mean over fewer words is not compared."""


class BranchesClaim(Claim):
    """Training changes the drawn kappa and alpha of a layer by an amount in a range."""

    dataset: DatasetName
    system: SystemName
    kind: Literal["branches"]
    stack: Stack = Field(default="encoder", description="Side of the model that the layer is in")
    layer: Count = Field(description="Number of the layer, from 1; the last one if there are fewer")
    quantity: Literal["spread", "changes_of_rank", "smallest_share"] = Field(
        description="spread: largest over smallest growth, a weight's final over its initial value; smallest_share: "
        "smallest growth; changes_of_rank: number of pairs of branches whose order changed"
    )
    at_least: Number
    at_most: Number | None = None

    @property
    def trainings(self) -> list[System]:
        return [(self.system, self.dataset)]

    def baselines(self, scores: Scores) -> list[System]:
        """Return the system if a bound holds of weights that have hardly moved yet, and more steps could break it."""
        return self.trainings if self.at_most is not None or self.quantity == "smallest_share" else []

    def expected_winner(self, scores: Scores) -> list[System]:
        return self.trainings

    def evaluate(self, measured: Measurements) -> Findings:
        """Test each kind of weight against the bounds, by a t test over trainings.

        Returns:
            One piece of evidence for each bound and kind of weight.

        Raises:
            NotRun: A run was trained before the initial weights were logged.
        """
        found: dict[str, list[float]] = {}
        for run in measured.view.runs(self.system, self.dataset):
            for curve in measured.folders.branch_curves(run, self.layer, self.stack):
                if curve.steps[0] > 0:
                    raise NotRun(
                        f"{run.system} seed {run.seed} was trained before initial weights were logged; train it again"
                    )
                found.setdefault(curve.name, []).append(self.value(curve))
        evidence = [
            effect for name in found for effect in within_bounds(name, found[name], self.at_least, self.at_most)
        ]
        ours = ", ".join(f"{name} {fmean(values):.2f}" for name, values in found.items())
        return Findings(ours, evidence, "t over trainings")

    def value(self, curve: BranchCurve) -> float:
        """Return the quantity of one training."""
        match self.quantity:
            case "spread":
                return curve.spread()
            case "changes_of_rank":
                return float(curve.changes_of_rank())
            case "smallest_share":
                return curve.smallest_share()


class GateClaim(Claim):
    """The mean gate between two channels differs between two kinds of source words, in all test sets of the grammar."""

    dataset: DatasetName
    system: SystemName
    kind: Literal["gate_values"]
    channel: Literal["rnn", "emb"] = Field(
        description="Channel weighed by 1 - z; the channels before it are weighed by z"
    )
    words: Annotated[list[WordKind], Field(min_length=2, max_length=2)] = Field(description="Kinds of source words")
    direction: Literal["rising", "either"] = Field(
        description="rising: z is larger over the second kind; either: it differs"
    )
    margin: Number = Field(default=0, ge=0, description="Value that the difference has to exceed")

    @property
    def trainings(self) -> list[System]:
        return [(self.system, self.dataset)]

    def expected_winner(self, scores: Scores) -> list[System]:
        return self.trainings

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Artifact]:
        for trained in view.trained([self.system], self.dataset):
            yield from (trained, Gates(trained.run))

    def evaluate(self, measured: Measurements) -> Findings:
        """Test the difference of the mean gates over both kinds of words, by a bootstrap over sentences."""
        samples: list[Sample] = []
        for kind in self.words:
            runs = measured.view.runs(self.system, self.dataset)
            rows = [measured.folders.gates(run, f"{self.channel}.{kind}") for run in runs]
            if min(seed_rows[:, 1].sum() for seed_rows in rows) < FEWEST_WORDS:
                return Findings(f"fewer than {FEWEST_WORDS} words of {kind}", [], "")
            samples.append(bootstrap_sample([[seed_rows] for seed_rows in rows], mean_of_totals, self.dataset))
        (word, other), (first, second) = self.words, samples
        sign = -1 if self.direction == "either" and second.mean < first.mean else 1
        name = f"{other} − {word}" if sign > 0 else f"{word} − {other}"
        name += f" − {self.margin:g}" if self.margin else ""
        evidence = contrast(f"mean z of {name}", [(sign, second), (-sign, first)], -self.margin)
        ours = f"mean z: {word} {first.mean:.3f}, {other} {second.mean:.3f}"
        return Findings(ours, [evidence], RESAMPLED)

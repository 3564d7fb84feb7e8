"""Claims about losses and steps of trainings, and about attention over speech during them."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from pipeline.analysis.claims.claim import Claim, Findings, chain_links, distinct, of_two_systems
from pipeline.analysis.claims.measurements import Measurements, Values
from pipeline.analysis.evidence import Evidence, Sample, contrast
from pipeline.analysis.reference_types import DatasetName, SystemName
from pipeline.analysis.run_folders import NotRun
from pipeline.analysis.training_curves import PLATEAU, LossCurve, System, curve_gaps, mean_gaps, not_at_plateau
from pipeline.analysis.view import PaperView, Scores
from pipeline.core.artifacts import Alignments, Artifact, RunId
from pipeline.core.records.training import DEV_LOSS, TrainingCost
from pipeline.core.schema import Number

TRAINING_LOSS = "training_loss"
"""Name of the loss on training data in the measured noise."""
EARLIER_LOSS = "dev_loss before the end"
"""Name of a loss that has no measured noise."""


class TrainedPair(Claim):
    """A claim about the trainings of a system and a baseline on one dataset."""

    quantity: ClassVar[str] = DEV_LOSS
    """Name of what is compared in the measured noise."""

    dataset: DatasetName
    system: SystemName
    baseline: SystemName

    compares_two_systems = model_validator(mode="after")(of_two_systems)

    @property
    def trainings(self) -> list[System]:
        return [(self.system, self.dataset), (self.baseline, self.dataset)]

    def design(self, scores: Scores) -> tuple[str, str, list[str]] | None:
        return self.quantity, self.dataset, [self.system, self.baseline]

    def runs(self, measured: Measurements) -> list[list[RunId]]:
        """Return the runs of the system and of the baseline."""
        return [measured.view.runs(*training) for training in self.trainings]

    def curves(self, measured: Measurements) -> list[list[LossCurve]]:
        """Return the loss curves of the system and of the baseline."""
        return [[measured.folders.loss_curve(run) for run in runs] for runs in self.runs(measured)]

    def seconds(self, measured: Measurements) -> tuple[list[float], str]:
        """Return the mean training time of the system and of the baseline, and its unit in words.

        Steps that a kill undid are left out. Time is CPU time per thread if all trainings counted that, because
        time by the clock depends on what else a processor does.
        """
        costs = [[measured.folders.required_cost(run) for run in runs] for runs in self.runs(measured)]
        counted = all(cost.thread_seconds for of_system in costs for cost in of_system)
        found = [
            fmean(kept_seconds(*pair, counted) for pair in zip(of_system, curves, strict=True))
            for of_system, curves in zip(costs, self.curves(measured), strict=True)
        ]
        return found, "s of CPU time per thread" if counted else "s"

    def dev_losses(self, measured: Measurements, system: str, steps: float = np.inf) -> Sample:
        """Return the lowest dev losses up to a step, with their own noise: it falls as trainings come to an end.

        The noise measured once for a family is that of whole trainings, so it does not stand in for an earlier step's.

        Args:
            measured: Measurements of the paper's runs.
            system: The system or the baseline.
            steps: The step; by default the last one.
        """

        def lowest(runs: list[RunId]) -> Values:
            curves = [measured.folders.loss_curve(run) for run in runs]
            if any(curve.steps[0] > steps for curve in curves):
                raise NotRun(f"{system} was not validated in the first {steps:.0f} steps")
            return [curve.best_dev_within(steps) for curve in curves]

        own = [measured.folders.loss_curve(run) for run in measured.view.runs(system, self.dataset)]
        quantity = DEV_LOSS if all(curve.steps[-1] <= steps for curve in own) else EARLIER_LOSS
        return measured.training_sample(system, self.dataset, quantity, lowest, detail=f"{steps:g} steps")

    def lower(self, name: str, ours: Sample, theirs: Sample) -> Evidence:
        """Test how far the system's quantity `name` is below the baseline's.

        Returns:
            The baseline's quantity minus the system's.
        """
        return contrast(f"{self.baseline} − {self.system}, {name}", [(1, theirs), (-1, ours)])


def kept_seconds(cost: TrainingCost, curve: LossCurve, counted: bool) -> float:
    """Return the seconds of the steps that a training kept; of CPU time if that is `counted`."""
    whole = (cost.thread_seconds if counted else None) or cost.total.seconds
    return whole * cost.share_kept(int(curve.steps[-1]))


class CurvesClaim(TrainedPair):
    """At equal training loss, a system's dev loss is lower than another's, beyond the gaps within a system."""

    quantity = "curve_gap"
    kind: Literal["curves"]

    def baselines(self, scores: Scores) -> list[System]:
        """Return the baseline, because one that still learns ends before the low training losses, where it overfits."""
        return self.trainings[1:]

    def expected_winner(self, scores: Scores) -> list[System]:
        return self.trainings[:1]

    def evaluate(self, measured: Measurements) -> Findings:
        """Compare every training with every one of the other system; the noise is that of gaps within a system.

        Returns:
            The mean gap in nats over all pairs of trainings; no evidence if two curves share no training loss.
        """

        def gaps_of(runs: list[RunId]) -> list[float]:
            return curve_gaps([measured.folders.fit_curve(run) for run in runs])

        ours, theirs = ([measured.folders.fit_curve(run) for run in runs] for runs in self.runs(measured))
        gaps = mean_gaps(ours, theirs)
        if gaps is None or not (curve_gaps(ours) and curve_gaps(theirs)):
            return Findings("the curves have no training loss in common", [], "")
        samples = [measured.training_sample(*training, self.quantity, gaps_of) for training in self.trainings]
        name = f"{self.baseline} − {self.system}, dev loss at equal training loss (nats)"
        evidence = contrast(name, [(1, samples[1]), (-1, samples[0])], float(gaps.mean()))
        return Findings(f"mean gap {gaps.mean():+.3f} nats", [evidence], "gaps between curves")


class EqualTimeClaim(TrainedPair):
    """After equal training time, a system's dev loss is lower than another's."""

    kind: Literal["equal_time"]

    def evaluate(self, measured: Measurements) -> Findings:
        """Compare losses when the shorter training ended; all steps of a training count as equally long.

        Returns:
            The baseline's lowest dev loss by that time minus the system's, in nats.

        Raises:
            NotRun: Both were trained on different hardware, or one was not validated by then.
        """
        curves = self.curves(measured)
        hardware = {measured.folders.required_cost(run).hardware for runs in self.runs(measured) for run in runs}
        if len(hardware) > 1:
            raise NotRun(f"trained on different hardware: {', '.join(sorted(hardware))}")
        seconds, unit = self.seconds(measured)
        steps = [min(seconds) / own * mean_steps(several) for own, several in zip(seconds, curves, strict=True)]
        pairs = zip((self.system, self.baseline), steps, strict=True)
        samples = [self.dev_losses(measured, system, reached) for system, reached in pairs]
        ours = (
            f"{self.system} and {self.baseline}: {samples[0].mean:.3f} and {samples[1].mean:.3f} nats after "
            f"{min(seconds):.0f} {unit} (trained for {seconds[0]:.0f} and {seconds[1]:.0f} s)"
        )
        return Findings(ours, [self.lower("dev loss at equal time (nats)", *samples)], "dev losses of trainings")


def mean_steps(curves: Sequence[LossCurve]) -> float:
    """Return the mean number of steps of some trainings, which may have stopped early."""
    return fmean(float(curve.steps[-1]) for curve in curves)


class StepsClaim(TrainedPair):
    """A system reaches another's lowest dev loss within a share of the other's steps."""

    kind: Literal["steps"]
    share: Number = Field(gt=0, description="Share of the baseline's steps")

    def baselines(self, scores: Scores) -> list[System]:
        return [(self.baseline, self.dataset)]

    def evaluate(self, measured: Measurements) -> Findings:
        """Test how far (in nats) the system's dev loss, in the share of steps, is below the baseline's lowest one.

        The baseline's last loss is no goal: if it overfits, its own training passes that sooner. A system that was
        trained for fewer steps than the share has to be at its plateau before it can contradict.

        Returns:
            The baseline's lowest dev loss minus the system's, in nats.

        Raises:
            NotRun: The system was not validated by then.
        """
        ours, theirs = self.curves(measured)
        total = mean_steps(theirs)
        name = f"lowest dev loss − that in {self.share:.0%} of its steps (nats)"
        samples = self.dev_losses(measured, self.system, self.share * total), self.dev_losses(measured, self.baseline)
        target = samples[1].mean
        shares = [curve.steps_to(target) / total for curve in ours]
        seconds, _ = self.seconds(measured)
        time = total / mean_steps(ours) * seconds[0] / seconds[1]
        after = [
            f"after {share:.0%} of its steps, {share * time:.0%} of its time" if share < float("inf") else "not reached"
            for share in shares
        ]
        text = f"{self.baseline}'s lowest dev loss: {'; '.join(after)}"
        own = self.trainings[0]
        still_learning = not_at_plateau([own], {own: ours}) if mean_steps(ours) < self.share * total else ""
        evidence = [self.lower(name, *samples)]
        return Findings(text, evidence, "dev losses of trainings", still_learning=still_learning)


class OwnPlateausClaim(TrainedPair):
    """A system reaches its own plateau within a share of the steps that another needs to reach its own."""

    quantity = "steps_to_plateau"
    kind: Literal["own_plateaus"]
    share: Number = Field(gt=0, description="Share of the baseline's steps")

    def baselines(self, scores: Scores) -> list[System]:
        """Return both systems, because one that still learns has no plateau."""
        return self.trainings

    def evaluate(self, measured: Measurements) -> Findings:
        """Compare the logarithms of the steps to within 0.5 % (`PLATEAU`) of each training's lowest dev loss."""

        def steps(runs: list[RunId]) -> Values:
            curves = [measured.folders.loss_curve(run) for run in runs]
            return [curve.steps_to((1 + PLATEAU) * float(curve.dev.min())) for curve in curves]

        ours, theirs = (measured.training_sample(*training, self.quantity, steps) for training in self.trainings)
        name = f"logarithm of {self.share:.0%} of {self.baseline}'s steps to its plateau over those of {self.system}"
        near = f"within {100 * PLATEAU:g} % of its lowest dev loss"
        reached = f"{near}: {self.system} after {ours.mean:.0f} steps, {self.baseline} after {theirs.mean:.0f}"
        evidence = contrast(name, [(1, theirs), (-1, ours)], float(np.log(self.share)), np.log)
        return Findings(reached, [evidence], "steps of trainings")


class AlignmentClaim(TrainedPair):
    """The entropy of attention over speech, averaged over a training, is lower than another system's."""

    quantity = "entropy"
    kind: Literal["alignment"]
    split: Literal["dev", "test"] = "dev"

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Artifact]:
        for trained in view.trained([self.system, self.baseline], self.dataset):
            yield from (trained, Alignments(trained.run, self.split))

    def evaluate(self, measured: Measurements) -> Findings:
        """Compare entropies in nats, each averaged over the checkpoints of a training."""

        def entropies(runs: list[RunId]) -> list[float]:
            maps = (measured.folders.alignment_maps(Alignments(run, self.split)) for run in runs)
            return [fmean(alignments.entropy) for alignments in maps]

        samples = [
            measured.training_sample(*training, self.quantity, entropies, detail=self.split)
            for training in self.trainings
        ]
        evidence = self.lower("entropy of attention over the training (nats)", *samples)
        return Findings(f"{samples[0].mean:.2f} and {samples[1].mean:.2f} nats", [evidence], "entropies of trainings")


class TrainingLossClaim(Claim):
    """Loss on training data at the end (nats, without smoothing and dropout) rises from each system to the next."""

    kind: Literal["training_loss"]
    dataset: DatasetName
    ascending: Annotated[list[SystemName], AfterValidator(distinct)] = Field(
        min_length=2, description="Systems, the smallest loss first"
    )

    @property
    def trainings(self) -> list[System]:
        return [(system, self.dataset) for system in self.ascending]

    def links(self) -> dict[str, Claim]:
        return chain_links(self, self.ascending)

    def design(self, scores: Scores) -> tuple[str, str, list[str]] | None:
        return TRAINING_LOSS, self.dataset, self.ascending

    def baselines(self, scores: Scores) -> list[System]:
        return self.trainings[1:2]

    def expected_winner(self, scores: Scores) -> list[System]:
        return self.trainings[:1]

    def evaluate(self, measured: Measurements) -> Findings:
        """Compare the last training losses of two systems."""

        def losses(runs: list[RunId]) -> list[float]:
            return [float(measured.folders.fit_curve(run).train[-1]) for run in runs]

        lower, upper = (measured.training_sample(*training, TRAINING_LOSS, losses) for training in self.trainings)
        evidence = contrast(f"{self.ascending[1]} − {self.ascending[0]}", [(1, upper), (-1, lower)])
        ours = f"{self.ascending[0]} {lower.mean:.3f}, {self.ascending[1]} {upper.mean:.3f} nats per symbol"
        return Findings(ours, [evidence], "losses of trainings")

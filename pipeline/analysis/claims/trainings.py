"""Claims about trainings, whatever they score."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from pipeline.analysis.claims.claim import Claim, Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.pools import Values
from pipeline.analysis.claims.terms import Scores
from pipeline.analysis.evidence import Evidence, Sample, contrast
from pipeline.analysis.floors import below_floor
from pipeline.analysis.names import DatasetName, SystemName
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Product, RunId
from pipeline.core.records.noise import DEV_LOSS


class AboutTrainings(Claim):
    """Looks at trainings of some systems on one dataset."""

    dataset: DatasetName

    @property
    @abstractmethod
    def systems(self) -> list[str]: ...

    @property
    def datasets(self) -> list[str]:
        return [self.dataset]

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Product]:
        yield from view.trained(self.systems, self.dataset)

    def findings(self, measured: Measurements) -> Findings:
        """With the systems whose perplexity on the development set says that they have learnt too little."""
        found, floors = super().findings(measured), measured.view.experiment.floors
        losses = {
            one: mean([measured.curve(run).dev[-1] for run in measured.view.runs(one, self.dataset)])
            for one in self.systems
        }
        faults = {one: below_floor(floors, "perplexity", float(np.exp(loss))) for one, loss in losses.items()}
        return replace(found, not_trained="; ".join(f"{one}: {fault}" for one, fault in faults.items() if fault))


class AboutTraining(AboutTrainings):
    """Looks at the trainings of one system."""

    system: SystemName

    @property
    def systems(self) -> list[str]:
        return [self.system]

    def favoured(self, scores: Scores) -> list[tuple[str, str]]:
        return [(self.system, self.dataset)]


class TrainedPair(AboutTrainings):
    """A system next to a baseline."""

    quantity: ClassVar[str] = DEV_LOSS
    """What is compared, as it is named in what was measured of noise."""

    system: SystemName
    baseline: SystemName

    @property
    def systems(self) -> list[str]:
        return [self.system, self.baseline]

    def design(self, scores: Scores) -> tuple[str, str, list[str]] | None:
        return self.quantity, self.dataset, self.systems

    def runs(self, measured: Measurements) -> tuple[list[RunId], list[RunId]]:
        """Runs of the system and of the baseline."""
        ours, theirs = (measured.view.runs(system, self.dataset) for system in self.systems)
        return ours, theirs

    def losses(self, measured: Measurements, system: str, own: Values = ()) -> Sample:
        """Dev losses, the final ones unless others are given, with the noise of final ones."""

        def final(runs: list[RunId]) -> Values:
            return [float(measured.curve(run).dev[-1]) for run in runs]

        return measured.trainings(system, self.dataset, DEV_LOSS, final, own)

    def lower(self, name: str, ours: Sample, theirs: Sample) -> Evidence:
        """How far the system's quantity `name` lies below the baseline's."""
        return contrast(f"{self.baseline} less {self.system}, {name}", [(1, theirs), (-1, ours)])


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

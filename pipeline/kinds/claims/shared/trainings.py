"""Claims about trainings, whatever they score."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from pipeline.kinds.claims.shared.claim import Claim, Findings
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.terms import Scores
from pipeline.kinds.evidence import over_seeds
from pipeline.kinds.names import DatasetName, SystemName
from pipeline.kinds.view import PaperView
from pipeline.products import Product, RunId

RESOLUTION_NATS = 0.01
"""Losses of two single trainings that differ by less, a hundredth of the perplexity, are not told apart."""


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


class AboutTraining(AboutTrainings):
    """Looks at the trainings of one system."""

    system: SystemName

    @property
    def systems(self) -> list[str]:
        return [self.system]


class TrainedPair(AboutTrainings):
    """A system next to a baseline."""

    system: SystemName
    baseline: SystemName

    @property
    def systems(self) -> list[str]:
        return [self.system, self.baseline]

    def runs(self, measured: Measurements) -> list[tuple[RunId, RunId]]:
        """Of the system and of the baseline, with the same seed."""
        ours, theirs = (measured.view.runs(system, self.dataset) for system in self.systems)
        return list(zip(ours, theirs, strict=True))

    def by_gaps(self, measured: Measurements, name: str, gaps: list[float], ours: str) -> Findings:
        """gaps: of one quantity `name`, in nats, between the trainings of each pair."""
        return Findings(ours, [over_seeds(name, gaps, RESOLUTION_NATS)], measured.seed_test())


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

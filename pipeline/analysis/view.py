"""The part of a project that claims, cells and figures use: one paper at one scale."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.analysis.convergence import Floors
from pipeline.analysis.names import ScoredSplits, measure_of
from pipeline.config import RunSpec
from pipeline.core.artifacts import Product, RunId, Score, Trained
from pipeline.core.layout import Layout
from pipeline.core.records.noise import MeasuredNoise


class SystemRecord(Protocol):
    """A system as its paper describes it."""

    @property
    def description(self) -> str:
        """Return the row's name in the paper's words or symbols."""


class Experiment(Protocol):
    """The papers, datasets and scale of one configuration; `papers.project.Project` implements it."""

    @property
    def layout(self) -> Layout: ...

    @property
    def floors(self) -> Floors: ...

    def noise_of(self, family: str) -> MeasuredNoise | None:
        """Return the run-to-run variance measured for a family of systems."""

    def runs_of(self, paper: str, system: str, dataset: str) -> list[RunId]:
        """Return a system's run with each seed; `paper` is the one that names system and dataset."""

    def stand_in(self, dataset: str) -> str:
        """Return the dataset that stands in for `dataset` at this scale."""

    def scored_apart(self, dataset: str, measure: str) -> str | None:
        """Return the dataset that is part of the name of a run's scores on its own dataset, if any."""

    def run_spec(self, run: RunId) -> RunSpec:
        """Return all settings that the training of `run` reads."""

    def locate(self, reference: str, paper: str) -> tuple[str, str]:
        """Return (paper, system) of a reference written in `paper`."""

    def system_entry(self, paper: str, reference: str) -> SystemRecord: ...


@dataclass(frozen=True)
class PaperView:
    """An experiment in the names of one of its papers."""

    experiment: Experiment
    paper: str

    @property
    def layout(self) -> Layout:
        """Return where products are stored."""
        return self.experiment.layout

    def runs(self, system: str, dataset: str) -> list[RunId]:
        """Return a system's run with each seed."""
        return self.experiment.runs_of(self.paper, system, dataset)

    def trained(self, systems: Iterable[str], dataset: str) -> Iterator[Trained]:
        """Yield the trainings of some systems."""
        for system in systems:
            yield from map(Trained, self.runs(system, dataset))

    def scored(self, runs: Iterable[RunId], scored: ScoredSplits, decodings: Sequence[str]) -> Iterator[Product]:
        """Yield for each run its training, then its scores."""
        for run in runs:
            yield Trained(run)
            yield from self.scores(run, scored, decodings)

    def scores(self, run: RunId, scored: ScoredSplits, decodings: Iterable[str]) -> list[Score]:
        """Return the scores of one run, decoding by decoding, with all splits of one decoding in a row."""
        measure = measure_of(scored.metric)
        apart = self.experiment.scored_apart(run.dataset, measure)
        where = self.experiment.stand_in(scored.scored_on) if scored.scored_on else apart
        return [Score(run, measure, decoding, split, where) for decoding in decodings for split in scored.splits]

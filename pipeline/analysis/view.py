"""What a kind of claim, cell or figure may ask of the papers: one paper at one scale."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.analysis.floors import Floors
from pipeline.analysis.scored import ScoredSplits, measure_of
from pipeline.config import RunSpec
from pipeline.core.artifacts import Product, RunId, Score, Trained
from pipeline.core.layout import Layout
from pipeline.core.records.noise import MeasuredNoise


class Described(Protocol):
    @property
    def description(self) -> str:
        """A system in the paper's words or symbols."""


class Experiment(Protocol):
    """The papers, datasets and scale of one configuration; papers/project.py has them."""

    @property
    def layout(self) -> Layout: ...

    @property
    def floors(self) -> Floors: ...

    def noise_of(self, family: str) -> MeasuredNoise | None:
        """What was measured of the noise between trainings of a kind of system."""

    def runs_of(self, paper: str, system: str, dataset: str) -> list[RunId]:
        """A system's run with each seed; both named as `paper` names them."""

    def stand_in(self, dataset: str) -> str:
        """The dataset that serves as `dataset` at this scale."""

    def scored_apart(self, dataset: str, measure: str) -> str | None:
        """The dataset that names the scores of a run on its own dataset, if they are named by one."""

    def run_spec(self, run: RunId) -> RunSpec:
        """All that the training of `run` reads."""

    def locate(self, reference: str, paper: str) -> tuple[str, str]:
        """(paper, system) of a reference written in `paper`."""

    def system_entry(self, paper: str, reference: str) -> Described: ...


@dataclass(frozen=True)
class PaperView:
    """An experiment as one of its papers names things."""

    experiment: Experiment
    paper: str

    @property
    def layout(self) -> Layout:
        return self.experiment.layout

    def runs(self, system: str, dataset: str) -> list[RunId]:
        """A system's run with each seed."""
        return self.experiment.runs_of(self.paper, system, dataset)

    def trained(self, systems: Iterable[str], dataset: str) -> Iterator[Trained]:
        """The trainings of some systems."""
        for system in systems:
            yield from map(Trained, self.runs(system, dataset))

    def scored(self, runs: Iterable[RunId], scored: ScoredSplits, decodings: Sequence[str]) -> Iterator[Product]:
        """Of each run its training, then its scores."""
        for run in runs:
            yield Trained(run)
            yield from self.scores(run, scored, decodings)

    def scores(self, run: RunId, scored: ScoredSplits, decodings: Iterable[str]) -> list[Score]:
        """Of one run, each decoding's splits in a row."""
        measure = measure_of(scored.metric)
        apart = self.experiment.scored_apart(run.dataset, measure)
        where = self.experiment.stand_in(scored.scored_on) if scored.scored_on else apart
        return [Score(run, measure, decoding, split, where) for decoding in decodings for split in scored.splits]

"""Scores and terms as settings files name them, and a paper at one scale, which resolves them to runs and files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field

from pipeline.analysis.reference_types import DatasetName, DecodingName, MetricName, ScoredSplit, SystemName
from pipeline.analysis.training_curves import Floors
from pipeline.config import DecodingConfig, RunSpec
from pipeline.core.artifacts import Artifact, RunId, Score, Trained
from pipeline.core.layout import Layout
from pipeline.core.records.training import MeasuredNoise
from pipeline.core.schema import Closed
from pipeline.metrics import metric_named


class ScoredSplits(Closed):
    """A metric of one split, or its mean over several."""

    metric: MetricName = Field(description="Metric of the score file, e.g. bleu_paper, gleu, perplexity")
    dataset: DatasetName = Field(description="Dataset as the paper names it; the scale says what stands in for it")
    split: ScoredSplit | Annotated[list[ScoredSplit], Field(min_length=2)] = Field(
        description="Split that is scored; of several, the mean of their scores"
    )
    scored_on: DatasetName | None = Field(
        default=None, description="Dataset whose split is scored; null = `dataset`, which the system is trained on"
    )

    @property
    def splits(self) -> list[ScoredSplit]:
        """Return the splits as a list."""
        return self.split if isinstance(self.split, list) else [self.split]


class NamedScore(ScoredSplits):
    """A metric under one decoding, to which claims refer by name."""

    decoding: DecodingName = Field(description="Named decoding of the paper that owns the system")


Scores = Mapping[str, NamedScore]
"""Scores of a paper's claims.yaml by name."""


class Term(Closed):
    """One side of a comparison."""

    system: SystemName = Field(description="`name`, or `paper/name` of another paper")
    decodings: list[DecodingName] = Field(default=[], description="Decodings, averaged, instead of the score's own")

    @property
    def label(self) -> str:
        """Return the system, with its decodings if it names any."""
        return f"{self.system} ({' '.join(self.decodings)})" if self.decodings else self.system


def as_term(term: str | Term) -> Term:
    """Return a term; a system's name becomes one under the score's own decoding."""
    return Term(system=term) if isinstance(term, str) else term


def difference_name(larger: Term, smaller: Term) -> str:
    """Return the name of the difference of two terms, as evidence shows it."""
    return f"{larger.label} − {smaller.label}"


def measure_of(metric: str) -> str:
    """Return the subfolder of a run that has the score files of a metric."""
    return metric_named(metric).reads.folder


class SystemRecord(Protocol):
    """A system as its paper describes it."""

    @property
    def description(self) -> str:
        """Return the row's name in the paper's words or symbols."""


class Experiment(Protocol):
    """The papers, datasets and scale of one configuration; `papers.project.Project` implements it."""

    @property
    def layout(self) -> Layout:
        """Return the paths of all artifacts."""

    @property
    def floors(self) -> Floors:
        """Return the floors that trained systems have to beat."""

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

    def origin(self, run: RunId) -> RunId:
        """Return the training that `run` continues, directly or through others; else `run` itself."""

    @property
    def decoding(self) -> Callable[[str, str, str], DecodingConfig]:
        """Return the function from paper, system and name to the settings of a named decoding."""

    def decoding_language_model(self, run: RunId, name: str) -> RunId | None:
        """Return the run of a named decoding's external language model."""

    def locate(self, reference: str, paper: str) -> tuple[str, str]:
        """Return the names of paper and system of a `reference`, `name` or `other/name`, written in `paper`."""

    def system_entry(self, paper: str, reference: str) -> SystemRecord:
        """Return the entry of a system in its paper.yaml."""


@dataclass(frozen=True)
class PaperView:
    """An experiment in the names of one of its papers."""

    experiment: Experiment
    paper: str

    @property
    def layout(self) -> Layout:
        """Return where artifacts are stored."""
        return self.experiment.layout

    def runs(self, system: str, dataset: str) -> list[RunId]:
        """Return a system's run with each seed."""
        return self.experiment.runs_of(self.paper, system, dataset)

    def trained(self, systems: Iterable[str], dataset: str) -> Iterator[Trained]:
        """Yield the trainings of some systems."""
        for system in systems:
            yield from map(Trained, self.runs(system, dataset))

    def scored(self, runs: Iterable[RunId], scored: ScoredSplits, decodings: Sequence[str]) -> Iterator[Artifact]:
        """Yield for each run its training, then its scores."""
        for run in runs:
            yield Trained(run)
            yield from self.scores(run, scored, decodings)

    def scores(self, run: RunId, scored: ScoredSplits, decodings: Iterable[str]) -> list[Score]:
        """Return the scores of one run: for each decoding, those of all splits."""
        measure = measure_of(scored.metric)
        apart = self.experiment.scored_apart(run.dataset, measure)
        where = self.experiment.stand_in(scored.scored_on) if scored.scored_on else apart
        return [Score(run, measure, decoding, split, where) for decoding in decodings for split in scored.splits]

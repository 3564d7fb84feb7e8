"""Types of the texts in settings files that refer to something: systems, datasets, scores and what is compared.

`papers/references.py` looks up every field of such a type when a project is loaded. A record that has one needs no
further line to have it checked.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Literal

from pydantic import Field

from pipeline.core.schema import Closed
from pipeline.metrics import metric_named


class Names(Enum):
    """Kinds of things that a text refers to."""

    SYSTEM = "`name`, or `paper/name` of another paper"
    SYSTEMS = "the same, or `*`, all of them"
    TRAINED = "`system@dataset` or `paper/system@dataset`"
    DATASET = "a dataset as the papers name it"
    DECODING = "a named decoding of the paper that owns the system"
    METRIC = "a metric of a score file"
    SCORE = "a score of the same paper's claims"
    SCALE = "a file of workflow/scales"
    LAYER = "a layer type of the paper's table of complexities"


SystemName = Annotated[str, Names.SYSTEM]
SystemPattern = Annotated[str, Names.SYSTEMS]
TrainedName = Annotated[str, Names.TRAINED]
DatasetName = Annotated[str, Names.DATASET]
DecodingName = Annotated[str, Names.DECODING]
MetricName = Annotated[str, Names.METRIC]
ScoreName = Annotated[str, Names.SCORE]
ScaleName = Annotated[str, Names.SCALE]
LayerName = Annotated[str, Names.LAYER]
TestName = Annotated[str, Field(pattern=r"^tests/[\w/]+\.py::test_\w+$")]
NewName = Annotated[str, Field(pattern=r"^[\w-]+$", max_length=60)]
"""Name that defines something others refer to; it becomes a part of paths."""
ScoredSplit = Literal["dev", "test", "test2", "test3", "test4", "test5"]


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
    """Return the term, or that of a system's name."""
    return Term(system=term) if isinstance(term, str) else term


def difference_name(larger: Term, smaller: Term) -> str:
    """Name the difference of two terms."""
    return f"{larger.label} less {smaller.label}"


def measure_of(metric: str) -> str:
    """Return the subfolder of a run that has the score files of a metric."""
    return metric_named(metric).reads.folder

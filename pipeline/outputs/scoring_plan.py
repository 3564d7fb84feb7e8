"""What is scored of a run under one decoding."""

from typing import Literal

from pydantic import Field

from pipeline.core.schema import Closed
from pipeline.data.dataset import SplitName


class PlannedScore(Closed):
    """One score file. Paths are in the run's folder where nothing else is said."""

    kind: Literal["text", "trees", "speech", "phenomena"]
    file: str = Field(description="The score file")
    output: str = Field(description="What was decoded")
    split: SplitName
    dataset: str = Field(description="Dataset file of what is scored")
    corpus: str = Field(description="Folder of its corpus")
    trees: list[str] = Field(default=[], description="Files for the trees, words in order and by alignment")


class ScoringPlan(Closed):
    """All scores of one run under one decoding."""

    name: str
    scores: list[PlannedScore]

"""Types of the texts in settings files that refer to something.

`papers/references.py` looks up every field of such a type when a project is loaded. A record that has one needs no
further line to have it checked.
"""

from enum import Enum
from typing import Annotated, Literal

from pydantic import Field


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
    LAYER = "a layer type that is timed"


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

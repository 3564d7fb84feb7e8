"""Types of the texts that refer to something: references.py looks up each field of them when a project is loaded.

A record that has a field of such a type needs no other line to have it checked, whichever kind it is of.
"""

from enum import Enum
from typing import Annotated

from pydantic import Field


class Names(Enum):
    """What a text names."""

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
"""What something is called that others refer to: a part of paths."""

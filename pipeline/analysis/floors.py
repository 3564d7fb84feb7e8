"""What a score has to reach before its system counts as trained: the records of `workflow/floors.yaml`."""

from pathlib import Path

from pydantic import Field

from pipeline.analysis.names import MetricName
from pipeline.core.schema import Closed, Number, load_yaml, validate
from pipeline.metrics import metric_named


class Floor(Closed):
    """Of one metric."""

    reach: Number = Field(description="A system that does not get beyond is not trained")
    why: str = Field(description="Why a system that does not get there has not learnt")


Floors = dict[MetricName, Floor]
"""By metric; those of other metrics have none."""


def load_floors(path: Path) -> Floors:
    """Raises UserError on unknown keys or bad values."""
    return validate(Floors, load_yaml(path), str(path))


def below_floor(floors: Floors, metric: str, score: float) -> str:
    """Why a system of this score does not count as trained; empty if it does."""
    floor, sign = floors.get(metric), metric_named(metric).sign
    if floor is None or sign * score > sign * floor.reach:
        return ""
    return f"{metric} of {score:.4g}, where {floor.reach:g} has to be passed: {floor.why}"

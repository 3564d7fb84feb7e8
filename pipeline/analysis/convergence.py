"""Checks that a system was trained far enough for its numbers to mean something.

Three checks: its score is beyond a floor (`workflow/floors.yaml`), its dev loss has reached a plateau, and it is not
over-fitted. The third is only reported.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from pipeline.analysis.names import MetricName
from pipeline.analysis.training_curves import LossCurve
from pipeline.core.schema import Closed, Number, load_yaml, validate
from pipeline.metrics import metric_named

PLATEAU = 0.005
"""At its plateau, a system's lowest dev loss falls by less than this share over the last fifth of its steps."""
OVER_FITTED = 0.05
"""An over-fitted system's last dev loss is above its lowest by at least this share."""

System = tuple[str, str]
"""Name of a system, and the dataset that it is trained on."""


class Floor(Closed):
    """The score of one metric that a trained system is beyond."""

    reach: Number = Field(description="A system that does not get beyond is not trained")
    why: str = Field(description="Why a system that does not get there has not learnt")


Floors = dict[MetricName, Floor]
"""Floors by metric; other metrics have none."""


def load_floors(path: Path) -> Floors:
    """Read `workflow/floors.yaml`.

    Raises:
        UserError: A key is unknown or a value is bad.
    """
    return validate(Floors, load_yaml(path), str(path))


def below_floor(floors: Floors, metric: str, score: float) -> str:
    """Explain why a system with this score does not count as trained; empty if it does."""
    floor, sign = floors.get(metric), metric_named(metric).sign
    if floor is None or sign * score > sign * floor.reach:
        return ""
    return f"{metric} of {score:.4g}, where {floor.reach:g} has to be passed: {floor.why}"


def not_at_plateau(systems: Iterable[System], curves: Mapping[System, Sequence[LossCurve]]) -> str:
    """Name the first system whose dev loss was still falling; empty if there is none.

    Args:
        systems: Systems to check.
        curves: For each system, the loss curve of each seed.
    """
    for one in systems:
        if (gain := float(np.mean([curve.late_gain for curve in curves[one]]))) >= PLATEAU:
            fell = f"fell by {gain:.1%} over" if np.isfinite(gain) else "was not measured before"
            return f"{one[0]}: its dev loss {fell} the last fifth of its updates"
    return ""


def over_fitted(curves: Mapping[System, Sequence[LossCurve]]) -> str:
    """Name the systems that ended far above their lowest dev loss; empty if there is none.

    Args:
        curves: For each system, the loss curve of each seed.
    """
    rises = [(system, np.mean([curve.rise for curve in of_seeds])) for (system, _), of_seeds in curves.items()]
    return "; ".join(f"{one}: its dev loss ended {by:.0%} above its lowest" for one, by in rises if by >= OVER_FITTED)

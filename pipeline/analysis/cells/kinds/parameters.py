from collections.abc import Sequence
from typing import ClassVar, Literal

from pipeline.analysis.cells.cell import FactCell
from pipeline.analysis.measured import Measured
from pipeline.core.artifacts import RunId


class ParametersCell(FactCell):
    """Trainable parameters of the model that was trained."""

    meaning: ClassVar[str] = "trainable parameters"
    kind: Literal["parameters"]

    def value(self, measured: Measured, run: RunId) -> float | None:
        trained = measured.trained(run)
        return trained.parameters.total if trained else None

    def in_words(self, values: Sequence[float]) -> str:
        """Every seed has as many."""
        return str(values[0]) if values else ""

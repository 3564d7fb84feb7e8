from typing import ClassVar, Literal

from pipeline.kinds.cells.shared.cell import FactCell
from pipeline.kinds.measured import Measured
from pipeline.products import RunId


class FlopsCell(FactCell):
    """Operations of the training, counted from the model."""

    meaning: ClassVar[str] = "operations of the training, counted from the model's matrix products, 2 a multiply-add"
    kind: Literal["flops"]

    def value(self, measured: Measured, run: RunId) -> float | None:
        cost = measured.cost(run)
        return cost.total.flops if cost else None

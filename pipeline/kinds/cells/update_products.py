from typing import ClassVar, Literal

from pipeline.kinds.cells.shared.cell import FactCell
from pipeline.kinds.measured import Measured
from pipeline.products import RunId


class UpdateProductsCell(FactCell):
    """Multiply-adds of an update."""

    meaning: ClassVar[str] = (
        "multiply-adds of an update, forward and backward, counted from the model's matrix products"
    )
    kind: Literal["update_products"]

    def value(self, measured: Measured, run: RunId) -> float | None:
        cost = measured.cost(run)
        return cost.total.flops / cost.total.steps / 2 if cost else None

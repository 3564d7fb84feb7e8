"""Operations of a training, counted from its model."""

from typing import TYPE_CHECKING, ClassVar, Literal

from pipeline.kinds.cells.shared.cell import FactCell
from pipeline.products import RunId

if TYPE_CHECKING:
    from pipeline.kinds.measured import Measured


class FlopsCell(FactCell):
    """Operations of the training, counted from the model."""

    meaning: ClassVar[str] = "operations of the training, counted from the model's matrix products, 2 a multiply-add"
    kind: Literal["flops"]

    def value(self, measured: "Measured", run: RunId) -> float | None:
        cost = measured.cost(run)
        return cost.total.flops if cost else None

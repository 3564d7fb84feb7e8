"""Operations of a training as Attention Is All You Need has them: time x devices x sustained rate (section 6.1)."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pipeline.kinds.cells.shared.cell import FactCell, Row
from pipeline.kinds.measured import Measured
from pipeline.kinds.training_cost import flops_by_time
from pipeline.kinds.view import PaperView
from pipeline.products import LayerTimes, Product, RunId


class FlopsByTimeCell(FactCell):
    """Operations of the training as time x devices x sustained single-precision rate."""

    meaning: ClassVar[str] = (
        "operations of the training by the paper's formula, time x devices x sustained single-precision rate; that of "
        "devices which the paper does not name is measured, a product of two 1024 x 1024 matrices"
    )
    kind: Literal["flops_by_time"]

    def needs(self, view: PaperView, row: Row) -> Iterator[Product]:
        """The training, and the measured rate of this machine."""
        for product in super().needs(view, row):
            yield product
            yield LayerTimes()

    def value(self, measured: Measured, run: RunId) -> float | None:
        cost = measured.cost(run)
        return flops_by_time(cost.starts, measured.layer_times) if cost else None

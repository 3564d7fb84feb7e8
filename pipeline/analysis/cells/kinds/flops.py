from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from pipeline.analysis.cells.cell import FactCell
from pipeline.analysis.measured import Measured
from pipeline.core.artifacts import RunId


class FlopsCell(FactCell):
    """Operations of the training, or of an update, counted from the model."""

    meaning: ClassVar[str] = "operations of the training, counted from the model's matrix products, 2 a multiply-add"
    kind: Literal["flops"]
    per: Literal["training", "update"] = Field(default="training", description="What they are counted of")

    def value(self, measured: Measured, run: RunId) -> float | None:
        cost = measured.cost(run)
        return cost.total.flops / (cost.total.steps if self.per == "update" else 1) if cost else None

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        return super().note(values, remark).replace("of the training", f"of the {self.per}")

from typing import ClassVar, Literal

from pipeline.kinds.cells.shared.cell import FactCell
from pipeline.kinds.measured import Measured
from pipeline.products import RunId


class DevLossCell(FactCell):
    """Loss on the development set at the end of the training."""

    meaning: ClassVar[str] = "nats a subword of the development set at the end of the training, without label smoothing"
    kind: Literal["dev_loss"]

    def value(self, measured: Measured, run: RunId) -> float | None:
        trained = measured.trained(run)
        return trained.dev.nll_per_token if trained else None

import math
from typing import ClassVar, Literal

from pipeline.core.artifacts import RunId
from pipeline.kinds.cells.shared.cell import FactCell
from pipeline.kinds.measured import Measured


class FitCell(FactCell):
    """Perplexity of training data without dropout."""

    meaning: ClassVar[str] = (
        "perplexity a subword at the end of the training, of the data of its first updates, without dropout"
    )
    kind: Literal["fit"]

    def value(self, measured: Measured, run: RunId) -> float | None:
        trained = measured.trained(run)
        if trained is None:
            return None
        return trained.fit.perplexity if trained.fit else math.nan

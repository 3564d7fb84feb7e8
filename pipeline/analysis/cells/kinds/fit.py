import math
from typing import ClassVar, Literal

from pipeline.analysis.cells.cell import FactCell
from pipeline.analysis.measured import Measured
from pipeline.core.artifacts import RunId


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

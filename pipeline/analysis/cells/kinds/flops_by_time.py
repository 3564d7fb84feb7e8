"""Operations of a training as Attention Is All You Need has them: time x devices x sustained rate (section 6.1)."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from pipeline.analysis.cells.cell import FactCell, Row
from pipeline.analysis.measured import Measured
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import LayerTimes, Product, RunId
from pipeline.core.records.probes import LayerCosts
from pipeline.core.records.training import StartCost

# Sustained single-precision operations a second, as the paper gives them (footnote 5).
PRINTED_RATES = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}


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


def flops_by_time(starts: Iterable[StartCost], measured: LayerCosts | None) -> float | None:
    """Over the starts of one training (`cost.json`), or None when the rate of one of its devices is not known.

    measured: what the stage layer-times wrote, for devices that the paper does not name.
    """
    total = 0.0
    for start in starts:
        rate = sustained_rate(start.device, start.threads, measured)
        if rate is None:
            return None
        total += start.seconds * start.processes * rate
    return total


def sustained_rate(device: str, threads: int, measured: LayerCosts | None) -> float | None:
    """Single-precision operations a second of one process's device; of a processor, of the threads that it used."""
    for name, rate in PRINTED_RATES.items():
        if name in device.split("-")[0].split():
            return rate
    if measured is None or measured.device != device:
        return None
    return measured.matmul_flops_per_s * (threads / measured.threads if measured.on_processor else 1)

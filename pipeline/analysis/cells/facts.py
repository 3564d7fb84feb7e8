"""Columns about models and trainings rather than scores: parameters, fit, FLOPs, size."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from pipeline.analysis.cells.cell import Cell, CellContext, Row, RunCell, in_our_unit, is_ours
from pipeline.analysis.reference_types import SystemName
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Artifact, LayerTimes, ModelSizes, RunId, Trained
from pipeline.core.records.outputs import LayerCosts
from pipeline.core.records.training import StartCost
from pipeline.core.schema import Count, Positive, unknown

PRINTED_RATES = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
"""Sustained single-precision FLOP/s of GPUs that Attention Is All You Need gives (footnote 5)."""


class FactCell(RunCell):
    """A fact about the training of a row's system, averaged over seeds."""

    meaning: ClassVar[str]
    """Describes the fact below the table."""
    unit: Positive = Field(default=1, description="Printed value x unit = ours")

    def needs(self, view: PaperView, row: Row) -> Iterator[Artifact]:
        yield from map(Trained, self.runs(view, row))

    def value(self, folders: RunFolders, run: RunId) -> float | None:
        """Return the fact about one run; None if it was not run, NaN if an older version did not measure it.

        Raises:
            NotImplementedError: The kind does not override it.
        """
        raise NotImplementedError

    def formatted(self, values: Sequence[float]) -> str:
        """Format the mean over runs; empty if there are no values or one is NaN."""
        total = sum(values)
        return f"{total / len(values):.6g}" if values and total == total else ""

    def fill(self, context: CellContext) -> dict[str, str]:
        runs = self.runs(context.table.view, context.row)
        found = (self.value(context.table.folders, run) for run in runs)
        ours = self.formatted([value for value in found if value is not None])
        printed = in_our_unit(self.printed_in(context.row), self.unit)
        return {"printed": printed, "ours": ours} | context.comparison(self, ours)

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        return f"{self.meaning}, of the runs on {self.dataset}{remark}."


class ParametersCell(FactCell):
    """Trainable parameters of the model that was trained."""

    meaning: ClassVar[str] = "trainable parameters"
    kind: Literal["parameters"]

    def value(self, folders: RunFolders, run: RunId) -> float | None:
        trained = folders.trained(run)
        return trained.parameters.total if trained else None

    def formatted(self, values: Sequence[float]) -> str:
        """Format the number of one seed, which all have."""
        return str(values[0]) if values else ""


class FitCell(FactCell):
    """Perplexity on training data, without dropout."""

    meaning: ClassVar[str] = (
        "perplexity per subword of the data of the first steps, at the end of the training, without dropout"
    )
    kind: Literal["fit"]

    def value(self, folders: RunFolders, run: RunId) -> float | None:
        trained = folders.trained(run)
        if trained is None:
            return None
        return trained.fit.perplexity if trained.fit else math.nan


class FlopsCell(FactCell):
    """FLOPs of the training, or of a step, counted from the model, without steps that a kill undid."""

    meaning: ClassVar[str] = (
        "FLOPs of the training, without repeated steps, counted from the model's matrix multiplications, 2 per "
        "multiply-add"
    )
    kind: Literal["flops"]
    per: Literal["training", "update"] = Field(
        default="training", description="Unit of work that is counted; update = one training step"
    )

    def value(self, folders: RunFolders, run: RunId) -> float | None:
        cost, trained = folders.cost(run), folders.trained(run)
        if cost is None or trained is None:
            return None
        return cost.total.flops * (1 / cost.total.steps if self.per == "update" else cost.share_kept(trained.steps))

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        note = super().note(values, remark)
        return note.replace("of the training", "of a training step") if self.per == "update" else note


class FlopsByTimeCell(FactCell):
    """FLOPs of the training as time x devices x sustained single-precision FLOP/s."""

    meaning: ClassVar[str] = (
        "FLOPs of the training, without repeated steps, by the paper's formula, time x devices x sustained "
        "single-precision FLOP/s; the rate of devices that the paper does not name is measured by multiplying two "
        "1024 x 1024 matrices"
    )
    kind: Literal["flops_by_time"]

    def needs(self, view: PaperView, row: Row) -> Iterator[Artifact]:
        for artifact in super().needs(view, row):
            yield artifact
            yield LayerTimes()

    def value(self, folders: RunFolders, run: RunId) -> float | None:
        cost, trained = folders.cost(run), folders.trained(run)
        if cost is None or trained is None:
            return None
        found = flops_by_time(cost.starts, folders.layer_costs)
        return None if found is None else found * cost.share_kept(trained.steps)


def flops_by_time(starts: Iterable[StartCost], measured: LayerCosts | None) -> float | None:
    """Estimate the FLOPs of a training as Attention Is All You Need does (section 6.1).

    Args:
        starts: Starts of the training, from its `cost.json`.
        measured: Rate of this machine, for devices that the paper does not name.

    Returns:
        None if the rate of one of its devices is unknown.
    """
    total = 0.0
    for start in starts:
        rate = sustained_rate(start.device, start.threads, measured)
        if rate is None:
            return None
        total += start.seconds * start.processes * rate
    return total


def sustained_rate(device: str, threads: int, measured: LayerCosts | None) -> float | None:
    """Return the single-precision FLOP/s of a GPU, or of the CPU threads that one process used; None if unknown.

    Args:
        device: Name of the device, as the start of the training recorded it.
        threads: CPU threads of one process.
        measured: Rate of this machine, for devices that the paper does not name.
    """
    for name, rate in PRINTED_RATES.items():
        if name in device.split("-")[0].split():
            return rate
    if measured is None or measured.device != device:
        return None
    return measured.matmul_flops_per_s * (threads / measured.threads if measured.on_processor else 1)


class SizeCell(Cell):
    """The trainable parameters of a row's system at its printed settings, whatever the scale."""

    kind: Literal["size"]
    vocab: Count = Field(description="Rows of the embeddings")
    vocab_of: dict[SystemName, Count] = Field(default={}, description="Rows of the embeddings of single systems")
    why: str = Field(description="Source of these numbers, printed below the table")
    unit: Positive = Field(default=1, description="Printed value x unit = ours")
    system: str = Field(default="system", description="Column of the printed table that names the system")

    def columns(self) -> set[str]:
        return super().columns() | {self.system}

    def faults(self, rows: Sequence[Row], cells: Mapping[str, Cell], where: str) -> Iterator[str | None]:
        for system in self.vocab_of:
            yield unknown(system, {row[self.system] for row in rows}, f"{where}.vocab_of")

    def sized_model(self, row: Row) -> tuple[str, int] | None:
        """Return system and vocabulary of the model that is counted; None if there is none."""
        system = row[self.system] if is_ours(row) else ""
        return (system, self.vocab_of.get(system, self.vocab)) if system else None

    def needs(self, view: PaperView, row: Row) -> Iterator[Artifact]:
        if self.sized_model(row):
            yield ModelSizes(view.paper)

    def fill(self, context: CellContext) -> dict[str, str]:
        wanted = self.sized_model(context.row)
        sizes = context.table.folders.model_sizes if wanted else {}
        ours = str(sizes[wanted]) if wanted in sizes else ""
        return {"printed": in_our_unit(self.printed_in(context.row), self.unit), "ours": ours}

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        others = "".join(f", {vocab} for {system}" for system, vocab in self.vocab_of.items())
        used = f"{self.vocab} rows of embeddings{others}"
        return f"trainable parameters at the paper's size, with {used}. {self.why}"

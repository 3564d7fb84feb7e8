"""What every kind of column of a table says: what it needs, what stands in it, and how that is shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from pipeline.analysis.measured import Measured
from pipeline.analysis.names import DatasetName
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Product, RunId, Trained
from pipeline.core.schema import Closed, Positive

Row = dict[str, str]
"""A row of a printed table, by column."""

NOT_COMPARABLE = "not comparable"


class Cell(Closed):
    """A measured column of a table."""

    required: ClassVar[bool] = False
    """Whether a row without it counts as not run."""
    printed: str | None = Field(default=None, description="Column of the printed table; null = the paper printed none")

    @property
    def compared_metric(self) -> str | None:
        """The metric that a printed number has to be of; None where the kind itself says what is measured."""
        return None

    def columns(self) -> set[str]:
        """Columns of the printed table that it names."""
        return {self.printed} if self.printed else set()

    def faults(self, rows: Sequence[Row], cells: Mapping[str, "Cell"], where: str) -> Iterator[str | None]:
        """A line for each thing that is wrong with it among the rows and cells of its table; None for what is right."""
        return iter(())

    def systems(self, row: Row) -> set[str]:
        """Systems whose runs stand in a row."""
        return set()

    def runs(self, view: PaperView, row: Row) -> list[RunId]:
        """The runs whose number stands in a row; none where it is not ours to run."""
        return []

    def needs(self, view: PaperView, row: Row) -> Iterator[Product]:
        """What has to be made before a row is filled in; nothing where it is not ours to run."""
        return iter(())

    def made_of(self, table: "PrintedTable", index: int) -> list[tuple["Cell", Row]]:
        """The cells on whose comparability with the printed numbers its own depends."""
        return [(self, table.rows[index])]

    def fill(self, place: "Place") -> dict[str, str]:
        """Its columns of the CSV, `printed` and `ours` among them; empty where nothing applies."""
        raise NotImplementedError

    def shown(self, values: Mapping[str, str]) -> dict[str, str]:
        """What Markdown shows of `fill`'s columns, by heading."""
        return {key: short(values[key]) for key in ("printed", "ours")}

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        """What stands below the table: what it is, and `remark`, whether it can be compared. values: of each row."""
        raise NotImplementedError

    def printed_in(self, row: Row) -> str:
        """The paper's number."""
        return row[self.printed] if self.printed else ""


@dataclass(frozen=True)
class PrintedTable:
    """A printed table, its measured columns, and what there is to fill them in with."""

    view: PaperView
    rows: Sequence[Row]
    cells: Mapping[str, Cell]
    measured: Measured


@dataclass(frozen=True)
class Place:
    """Where a column is filled in."""

    table: PrintedTable
    index: int
    why_not: str
    """Why the number is not comparable with the printed one; empty if it is."""

    @property
    def row(self) -> Row:
        return self.table.rows[self.index]

    def comparison(self, cell: Cell, ours: str) -> dict[str, str]:
        """The column that says why a number of ours is not comparable with the one printed beside it."""
        return {"why_not": self.why_not if ours and cell.printed_in(self.row) else ""} if cell.printed else {}


class RunCell(Cell):
    """A column that is read from runs."""

    dataset: DatasetName = Field(
        description="Dataset of the runs it is read from, as the paper names it; the scale says what stands in for it"
    )
    system: str = Field(default="system", description="Column of the printed table that names the system")

    def columns(self) -> set[str]:
        return super().columns() | {self.system}

    def systems(self, row: Row) -> set[str]:
        return {row[self.system]} - {""}

    def runs(self, view: PaperView, row: Row) -> list[RunId]:
        ours = self.systems(row) if is_ours(row) else ()
        return [run for system in ours for run in view.runs(system, self.dataset)]


class FactCell(RunCell):
    """A column about the training rather than its score."""

    meaning: ClassVar[str]
    """In words, for below the table."""
    unit: Positive = Field(default=1, description="Printed value x unit = ours")

    def needs(self, view: PaperView, row: Row) -> Iterator[Product]:
        yield from map(Trained, self.runs(view, row))

    def value(self, measured: Measured, run: RunId) -> float | None:
        """Of one run; None when it is not there, NaN when an older version did not measure it."""
        raise NotImplementedError

    def in_words(self, values: Sequence[float]) -> str:
        """The mean over runs; empty without values, or when one is not known."""
        total = sum(values)
        return f"{total / len(values):.6g}" if values and total == total else ""

    def fill(self, place: Place) -> dict[str, str]:
        runs = self.runs(place.table.view, place.row)
        found = (self.value(place.table.measured, run) for run in runs)
        ours = self.in_words([value for value in found if value is not None])
        printed = in_our_unit(self.printed_in(place.row), self.unit)
        return {"printed": printed, "ours": ours} | place.comparison(self, ours)

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        return f"{self.meaning}, of the runs on {self.dataset}{remark}."


def is_ours(row: Row) -> bool:
    """Whether a row is of a system to be run, rather than cited or computed."""
    return row["source"] == "ours-to-run"


def in_our_unit(printed: str, unit: float) -> str:
    """The paper's number, written out."""
    return f"{float(printed) * unit:.6g}" if printed else ""


def short(number: str) -> str:
    """A large number in a few characters: 65.1M, 3.30e+18."""
    if not number:
        return ""
    value = float(number)
    if value >= 999.5e6:  # what is rounded to the next unit is shown in it
        return f"{value:.2e}"
    return f"{value / 1e6:.3g}M" if value >= 999.5e3 else f"{value / 1e3:.3g}K" if value >= 9999.5 else f"{value:.4g}"

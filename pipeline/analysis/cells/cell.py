"""Base classes of all measured columns of a table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from pipeline.analysis.reference_types import DatasetName
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Artifact, RunId
from pipeline.core.schema import Closed

Row = dict[str, str]
"""A row of a printed table, by column."""

NOT_COMPARABLE = "not comparable"


class Cell(Closed):
    """A measured column of a table."""

    required: ClassVar[bool] = False
    """True if a row without it counts as not run."""
    printed: str | None = Field(default=None, description="Column of the printed table; null = the paper printed none")

    @property
    def compared_metric(self) -> str | None:
        """Return the metric that a printed number must have; None if the kind determines what is measured."""
        return None

    def columns(self) -> set[str]:
        """Return the columns of the printed table that it names."""
        return {self.printed} if self.printed else set()

    def faults(self, rows: Sequence[Row], cells: Mapping[str, "Cell"], where: str) -> Iterator[str | None]:
        """Yield a line for each fault among the rows and cells of its table, and None for each correct one.

        Args:
            rows: Rows of the printed table.
            cells: All measured columns of the table, by name.
            where: Start of the messages: file and key.

        Returns:
            Messages; the base class finds no fault.
        """
        return iter(())

    def systems(self, row: Row) -> set[str]:
        """Return the systems whose runs fill in a row."""
        return set()

    def runs(self, view: PaperView, row: Row) -> list[RunId]:
        """Return the runs that fill in a row; none if its system is not ours to run."""
        return []

    def needs(self, view: PaperView, row: Row) -> Iterator[Artifact]:
        """Return the artifacts that fill in a row; none if its system is not ours to run."""
        return iter(())

    def comparability_sources(self, table: "PrintedTable", index: int) -> list[tuple["Cell", Row]]:
        """Return the cells that must be comparable with printed numbers before this one is."""
        return [(self, table.rows[index])]

    def fill(self, context: "CellContext") -> dict[str, str]:
        """Return the cell's columns of the CSV, including `printed` and `ours`; a column that does not apply is empty.

        Raises:
            NotImplementedError: The kind does not override it.
        """
        raise NotImplementedError

    def shown(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the texts that Markdown shows, by heading, from the columns of `fill`."""
        return {key: short(values[key]) for key in ("printed", "ours")}

    def note(self, values: Sequence[Mapping[str, str]], remark: str) -> str:
        """Return the sentence below the table that describes the column.

        Args:
            values: Columns of each row.
            remark: Whether the numbers are comparable.

        Raises:
            NotImplementedError: The kind does not override it.
        """
        raise NotImplementedError

    def printed_in(self, row: Row) -> str:
        """Return the paper's number."""
        return row[self.printed] if self.printed else ""


@dataclass(frozen=True)
class PrintedTable:
    """A printed table, its measured columns, and the folders that fill them in."""

    view: PaperView
    rows: Sequence[Row]
    cells: Mapping[str, Cell]
    folders: RunFolders


@dataclass(frozen=True)
class CellContext:
    """The row and table in which a cell is filled in."""

    table: PrintedTable
    index: int
    why_not: str
    """Reason why the number is not comparable with the printed one; empty if it is."""

    @property
    def row(self) -> Row:
        """Return the printed row."""
        return self.table.rows[self.index]

    def comparison(self, cell: Cell, ours: str) -> dict[str, str]:
        """Return the column that explains why `ours`, perhaps empty, is not comparable with the printed number."""
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


def is_ours(row: Row) -> bool:
    """Return whether our runs fill in a row, rather than a citation or a calculation."""
    return row["source"] == "ours-to-run"


def in_our_unit(printed: str, unit: float) -> str:
    """Return the paper's number in our unit.

    Args:
        printed: Printed number as text; empty if the paper printed none.
        unit: Printed value x unit = ours.
    """
    return f"{float(printed) * unit:.12g}" if printed else ""


def shown_interval(low: str, high: str) -> str:
    """Return `low` and `high` as `1.2–3.4`, or as `-1.2 to 3.4` if a dash would look like a sign; "" if unknown."""
    return f"{low} to {high}" if low.startswith(("-", "+")) else f"{low}–{high}" if low else ""


def short(number: str) -> str:
    """Shorten a large number: 65.1M, 3.30e+18."""
    if not number:
        return ""
    value = float(number)
    if value >= 999.5e6:  # a number that rounds up to the next unit is shown in that unit
        return f"{value:.2e}"
    return f"{value / 1e6:.3g}M" if value >= 999.5e3 else f"{value / 1e3:.3g}K" if value >= 9999.5 else f"{value:.4g}"

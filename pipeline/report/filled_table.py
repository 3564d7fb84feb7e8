"""A table filled in with what was measured: each printed number beside ours, as the CSV has it."""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any

from pandas import DataFrame, concat

from pipeline.analysis.cells.cell import NOT_COMPARABLE, CellContext, PrintedTable, is_ours
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import RunId, Trained
from pipeline.core.records.training import TrainedRun
from pipeline.papers.comparability import Comparability, Reason, format_reasons
from pipeline.papers.paper import TableEntry
from pipeline.papers.project import Project
from pipeline.papers.reading import system_readings
from pipeline.report.labels import names_of_rows

NOT_RUN, NOT_SCORED, INCOMPLETE, CITED = "not run", "not scored", "incomplete", "cited"
UNFINISHED = {NOT_RUN, NOT_SCORED, INCOMPLETE}
AGREES, HIGHER, LOWER = "agrees", "higher", "lower"


@dataclass(frozen=True)
class FilledTable:
    """A filled table. All cells are text as shown; every row has every column, empty if nothing applies.

    Attributes:
        entry: Its entry in the paper's file.
        table: Its printed rows.
        labels: Labels and settings of each row.
        cells: Columns of each cell, row by row, by the cell's name.
        reasons: For each cell and row the reasons why it is not comparable; none if it is.
        runs: Steps, cost and provenance of each row.
    """

    entry: TableEntry
    table: PrintedTable
    labels: DataFrame
    cells: dict[str, list[dict[str, str]]]
    reasons: dict[str, list[list[Reason]]]
    runs: DataFrame

    @property
    def names(self) -> list[str]:
        """Return the names of rows: their labels and, if those are equal, the settings that differ."""
        return names_of_rows(self.entry, self.table.rows)

    def verdict(self, name: str, index: int) -> str:
        """Compare a cell with the printed number.

        Args:
            name: Name of the cell.
            index: Number of the row, from 0.

        Returns:
            `higher` or `lower` if ours is, beyond its interval; otherwise `agrees`, `cited`, `not run`, `not scored`,
            `incomplete` or `not comparable`. Empty if nothing can be compared.
        """
        cell, row, values = self.entry.cells[name], self.table.rows[index], self.cells[name][index]
        if not is_ours(row):
            return CITED if values["printed"] else ""
        if not values["ours"]:
            return missing(self.table.folders, cell.runs(self.table.view, row)) if cell.systems(row) else ""
        if values.get("why_not"):
            return NOT_COMPARABLE
        if not values["printed"] or not values.get("low"):
            return ""
        printed, low, high = (float(values[key]) for key in ("printed", "low", "high"))
        return HIGHER if printed < low else LOWER if printed > high else AGREES

    @property
    def all_runs(self) -> list[RunId]:
        """Return every training that a cell needs, including those of other rows."""
        needed = (
            artifact
            for row in self.table.rows
            for cell in self.entry.cells.values()
            for artifact in cell.needs(self.table.view, row)
        )
        return unique(artifact.run for artifact in needed if isinstance(artifact, Trained))

    @property
    def frame(self) -> DataFrame:
        """Return the table as its CSV has it."""
        cells = (DataFrame(rows).add_prefix(f"{name}_") for name, rows in self.cells.items())
        return concat([self.labels, *cells, self.runs], axis=1)


def fill(project: Project, paper: str, name: str, folders: RunFolders | None = None) -> FilledTable:
    """Return a table with all results that exist."""
    entry, view = project.table(paper, name), PaperView(project, paper)
    table = PrintedTable(view, project.printed[paper][name], entry.cells, folders or RunFolders(view))
    comparability, places = Comparability(project, paper), range(len(table.rows))
    reasons = {
        key: [comparability.reasons(entry, table, index, cell) for index in places] for key, cell in entry.cells.items()
    }
    cells = {
        key: [cell.fill(CellContext(table, index, format_reasons(reasons[key][index]))) for index in places]
        for key, cell in entry.cells.items()
    }
    runs = [{"status": status(table, cells, index), **run_columns(project, paper, table, index)} for index in places]
    labels = DataFrame(table.rows)[[*entry.label, *entry.settings]]
    return FilledTable(entry, table, labels, cells, reasons, DataFrame(runs))


def status(table: PrintedTable, cells: dict[str, list[dict[str, str]]], index: int) -> str:
    """Return whether a row has all its required numbers: `run`, or why not; `cited` if it is not ours to run.

    If none is required, all its numbers are. A row is `incomplete` if it has some of them, or if some of its runs are
    trained.
    """
    row = table.rows[index]
    if not is_ours(row):
        return CITED
    every = {name: cell for name, cell in table.cells.items() if cell.systems(row)}
    wanted = {name: cell for name, cell in every.items() if cell.required} or every
    found = [bool(cells[name][index]["ours"]) for name in wanted]
    if all(found):
        return "run"
    runs = unique(run for cell in wanted.values() for run in cell.runs(table.view, row))
    return INCOMPLETE if any(found) else missing(table.folders, runs)


def missing(folders: RunFolders, runs: Iterable[RunId]) -> str:
    """Return why a number of some runs is missing; see `why_missing`."""
    return why_missing({bool(folders.trained(run)) for run in runs})


def why_missing(trained: Set[bool]) -> str:
    """Return why a number is missing: none or only some of its runs are `trained`, or they are not scored."""
    return NOT_SCORED if trained == {True} else INCOMPLETE if True in trained else NOT_RUN


def run_columns(project: Project, paper: str, table: PrintedTable, index: int) -> dict[str, str]:
    """Return steps, hours, FLOPs and provenance of a row's trainings, added up, and its deviations."""
    row, folders = table.rows[index], table.folders
    runs: list[RunId] = unique(run for cell in table.cells.values() for run in cell.runs(table.view, row))
    systems = {system for cell in table.cells.values() for system in cell.systems(row)}
    readings = [system_readings(project, paper, system).items() for system in sorted(systems) if is_ours(row)]
    trained = {run: record for run in runs if (record := folders.trained(run))}
    costs = [cost for run in runs if (cost := folders.cost(run))]
    return {
        "steps": joined(steps_in_words(project, run, record) for run, record in trained.items()),
        "device_hours": f"{sum(record.device_hours for record in costs):.4f}" if costs else "",
        "train_flops": f"{sum(record.total.flops for record in costs):.3e}" if costs else "",
        "hardware": joined(record.hardware for record in costs),
        "commit": joined(record.provenance.get("commit", "") for record in trained.values()),
        "runs": joined(run.folder for run in runs),
        "readings": joined(f"{name} {choice}" for choices in readings for name, choice in choices),
        "deviations": deviations_of(project, paper, systems),
    }


def steps_in_words(project: Project, run: RunId, trained: TrainedRun) -> str:
    """Return the training steps, and the budget if the training ended before it."""
    budget = project.run_spec(run).training.max_steps
    return f"{trained.steps} of {budget}" if trained.steps < budget else str(trained.steps)


def deviations_of(project: Project, paper: str, systems: set[str]) -> str:
    """Return the numbers of the deviations that concern some systems."""
    numbered = enumerate(project.papers[paper].deviations, start=1)
    return " ".join(str(number) for number, deviation in numbered if deviation.concerns(systems))


def unique(values: Iterable[Any]) -> list[Any]:
    """Return distinct values in their order."""
    return list(dict.fromkeys(values))


def joined(values: Iterable[Any]) -> str:
    """Join distinct values by `; `."""
    return "; ".join(unique(str(value) for value in values if value != ""))

"""Readings of a paper side by side: each choice with the score of a system that differs in it alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.analysis.cells.cell import is_ours
from pipeline.analysis.cells.scores import ScoreCell
from pipeline.papers.project import Project
from pipeline.papers.reading import Interpretation, Reading, system_readings
from pipeline.report.filled_table import FilledTable
from pipeline.report.labels import column_titles
from pipeline.report.site.site_data import SiteData
from pipeline.report.site.tables import ShownCell, shown_cell


@dataclass(frozen=True)
class ShownChoice:
    """A choice of a reading, with the row that has it.

    Attributes:
        choice: Its meaning and support.
        label: Name of the row; empty if none differs in this choice alone.
        cells: Scores of the row.
    """

    name: str
    choice: Interpretation
    label: str
    cells: dict[str, ShownCell]


@dataclass(frozen=True)
class ShownReading:
    """A reading, and the table of its scores.

    Attributes:
        reading: Passage, choices and default.
        table: Name of the table; empty if no table has its scores.
        scores: Title of each score.
        context: Choices of other readings that all rows share and that are not defaults.
        arms: The choices.
    """

    name: str
    reading: Reading
    table: str
    scores: dict[str, str]
    context: str
    arms: list[ShownChoice]


Context = frozenset[tuple[str, str]]
"""Choices of the other readings."""


def shown_readings(site: SiteData, paper: str, tables: Mapping[str, FilledTable]) -> list[ShownReading]:
    """Return the readings of a paper with their scores."""
    readings = site.project.papers[paper].readings
    return [shown_reading(site, paper, tables, name, reading) for name, reading in readings.items()]


def shown_reading(
    site: SiteData, paper: str, tables: Mapping[str, FilledTable], name: str, reading: Reading
) -> ShownReading:
    """Return a reading with scores of rows of one table that differ in this reading alone.

    Rows with most of its choices are taken, if possible with the defaults of the other readings.
    """
    defaults = {(key, reading.default) for key, reading in site.project.papers[paper].readings.items()}
    found = {
        (table, context): rows
        for table, filled in tables.items()
        for context, rows in rows_by_choice(site.project, paper, filled, name).items()
    }
    table, context = max(found, key=lambda entry: (len(found[entry]), entry[1] <= defaults), default=("", frozenset()))
    rows = found.get((table, context), {})
    arms = []
    for choice, what in reading.choices.items():
        label, cells = "", dict[str, ShownCell]()
        if choice in rows:
            filled, index = tables[table], rows[choice]
            cells = {key: shown_cell(site, filled, key, index) for key in scores(filled)}
            label = filled.names[index]
        arms.append(ShownChoice(choice, what, label, cells))
    others = ", ".join(f"{key.replace('-', ' ')} {choice}" for key, choice in sorted(context - defaults))
    titles = column_titles(site.project, tables[table].entry.cells) if table else {}
    shown = {key: titles[key] for key in scores(tables[table])} if table else {}
    return ShownReading(name, reading, table, shown, others, arms)


def rows_by_choice(project: Project, paper: str, filled: FilledTable, name: str) -> dict[Context, dict[str, int]]:
    """Return the first row of each choice, by the choices of the other readings of its system."""
    found: dict[Context, dict[str, int]] = {}
    for index, row in enumerate(filled.table.rows):
        cells = (filled.entry.cells[key] for key in scores(filled) if is_ours(row))
        runs = [run for cell in cells for run in cell.runs(filled.table.view, row)]
        made = system_readings(project, paper, f"{runs[0].paper}/{runs[0].system}") if runs else {}
        if choice := made.pop(name, None):
            found.setdefault(frozenset(made.items()), {}).setdefault(choice, index)
    return found


def scores(filled: FilledTable) -> list[str]:
    """Return the names of a table's scores."""
    return [key for key, cell in filled.entry.cells.items() if isinstance(cell, ScoreCell)]

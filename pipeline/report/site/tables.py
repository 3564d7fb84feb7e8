"""Tables as pages show them: cells with a verdict in words and colour, their runs, and notes below."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.analysis.cells.cell import short
from pipeline.analysis.cells.scores import ScoreCell
from pipeline.core.artifacts import ExampleTable, LayerTable, RunId, TranscriptTable
from pipeline.core.csv_file import from_text
from pipeline.core.errors import UserError
from pipeline.report.filled_table import NOT_RUN, FilledTable, fill
from pipeline.report.markdown import note, scale_rules
from pipeline.report.site.names import SYMBOLS, column_titles
from pipeline.report.site.present import DONE, Present

WORDS = {
    "agrees": "the printed number lies in our interval",
    "higher": "our number is higher: the printed one lies below our interval",
    "lower": "our number is lower: the printed one lies above our interval",
    "not-comparable": "not comparable with the printed number",
    "provisional": "one seed: the run-to-run variance is not known",
    "primary": "named before any run as one by which the paper stands or falls",
    "not-run": "not run yet",
    "under-way": "the training is not finished",
    "not-scored": "trained, but its scores are missing",
    "failed": "a run failed",
    "cited": "the paper cites it; it is not ours to run",
}
"""What each mark of a cell means."""
SHORT = {"not-comparable": "n/c", "provisional": "1 seed", "not-run": "not run", "not-scored": "not scored"}
SHORT |= {"under-way": "under way"}
"""How a mark is written in a cell if not by its name."""
COMPARED = ("agrees", "higher", "lower", "not-comparable")
"""Marks of cells beside a printed number."""
KINDS = ("ours", "printed", "interval", "difference")
"""Parts of a cell, in the order of their columns."""


@dataclass(frozen=True)
class Shown:
    """A cell: texts as they are shown, marks (classes, each with words), and the runs behind it."""

    printed: str = ""
    ours: str = ""
    spread: str = ""
    interval: str = ""
    difference: str = ""
    marks: list[str] = field(default_factory=list)
    why_not: str = ""
    runs: list[RunId] = field(default_factory=list)

    @property
    def hint(self) -> str:
        """Return what its marks mean."""
        return "; ".join([*(WORDS[mark] for mark in self.marks), *filter(None, [self.why_not])])


@dataclass(frozen=True)
class ShownRow:
    """A row of a measured table."""

    name: str
    settings: list[str]
    cells: dict[str, Shown]
    deviations: list[int]
    status: str
    hours: str
    steps: str


@dataclass(frozen=True)
class ShownTable:
    """A measured table."""

    name: str
    caption: str
    label: str
    settings: list[str]
    titles: dict[str, str]
    """Heading of each cell."""
    rows: list[ShownRow]
    notes: dict[str, str]
    rules: list[str]
    columns: dict[str, list[str]]
    """Parts of each cell that any row has."""

    @property
    def shared(self) -> list[str]:
        """Return the marks that every measured cell has: they are said once, above the table."""
        marked = [cell for row in self.rows for cell in row.cells.values() if cell.ours and cell.marks]
        printed = [cell for cell in marked if cell.printed]
        scores = [cell for cell in marked if cell.interval]
        groups = {mark: printed if mark in COMPARED else scores for mark in WORDS}
        return [mark for mark, cells in groups.items() if len(cells) > 1 and all(mark in cell.marks for cell in cells)]

    @property
    def shared_deviations(self) -> list[int]:
        """Return the deviations that concern every row of ours: they are named once, above the table."""
        ours = [set(row.deviations) for row in self.rows if row.status != "cited"]
        return sorted(set.intersection(*ours)) if len(ours) > 1 else []

    @property
    def marks(self) -> list[str]:
        """Return the marks that cells show."""
        found = {mark for row in self.rows for cell in row.cells.values() for mark in cell.marks}
        return [mark for mark in WORDS if mark in found and mark not in self.shared]

    @property
    def missing(self) -> int:
        """Return how many rows of ours have a number missing."""
        return sum(row.status not in (DONE, "cited") for row in self.rows)


@dataclass(frozen=True)
class PlainTable:
    """Any other table, as its CSV has it."""

    name: str
    caption: str
    header: list[str]
    rows: list[list[str]]


def measured_tables(present: Present, paper: str) -> dict[str, FilledTable | str]:
    """Fill in the tables of a paper that can be measured at this scale, or say why one cannot be."""
    found: dict[str, FilledTable | str] = {}
    for name in present.project.tables_here(paper):
        try:
            found[name] = fill(present.project, paper, name, present.folders(paper))
        except UserError as error:
            found[name] = str(error)
    return found


def shown_table(present: Present, paper: str, name: str, filled: FilledTable) -> ShownTable:
    """Put a table into the words and marks of its page."""
    entry, cells = filled.entry, {key: filled.values(key) for key in filled.entry.cells}
    titles, rows = column_titles(present.project, entry.cells), []
    for index, label in enumerate(filled.names):
        shown = {key: shown_cell(present, filled, key, index, cells[key][index]) for key in cells}
        status, runs = filled.runs["status"][index], [run for cell in shown.values() for run in cell.runs]
        if status == NOT_RUN:
            status = present.standing(runs)
        rows.append(
            ShownRow(
                name=label,
                settings=settings(present, filled, index, runs),
                cells=shown,
                deviations=[int(number) for number in filled.runs["deviations"][index].split()],
                status=DONE if status == "run" else status,
                hours=filled.runs["device_hours"][index],
                steps=filled.runs["steps"][index],
            )
        )
    columns = {
        key: [kind for kind in KINDS if kind == "ours" or any(getattr(row.cells[key], kind) for row in rows)]
        for key in cells
    }
    return ShownTable(
        name=name,
        caption=entry.caption.strip(),
        label=", ".join(one.replace("_", " ") for one in entry.label),
        settings=list(entry.settings),
        titles=titles,
        rows=rows,
        notes={titles[key]: note(filled, key) for key in cells},
        rules=scale_rules(present.project, filled.all_runs),
        columns=columns,
    )


def settings(present: Present, filled: FilledTable, index: int, runs: list[RunId]) -> list[str]:
    """Return the settings of a row: of the model that ran, with the printed value where that is another."""
    row, found = filled.table.rows[index], []
    for symbol in filled.entry.settings:
        text, key = row[symbol], SYMBOLS.get(symbol)
        if text and key and runs:
            section, _, name = key.partition(".")
            here, printed = (getattr(getattr(present.spec(runs[0], one), section), name) for one in (False, True))
            if is_number(text) and printed is not None and float(printed) == float(text) and here != printed:
                text = f"{here} ({text} printed)"
        found.append(text)
    return found


def is_number(text: str) -> bool:
    """Return whether a cell of a printed table is a number."""
    return text.replace(".", "", 1).isdigit()


def shown_cell(present: Present, filled: FilledTable, name: str, index: int, values: Mapping[str, str]) -> Shown:
    """Put a cell into words and marks."""
    cell = filled.entry.cells[name]
    runs, is_score = cell.runs(filled.table.view, filled.table.rows[index]), isinstance(cell, ScoreCell)
    standing, as_shown = filled.standing(name, index), str if is_score else short
    if standing == NOT_RUN:
        standing = present.standing(runs)
    one_seed = is_score and bool(values["ours"]) and len(runs) == 1
    return Shown(
        printed=as_shown(values["printed"]),
        ours=as_shown(values["ours"]),
        spread=values.get("spread", ""),
        interval=f"{values['low']} – {values['high']}" if values.get("low") else "",
        difference="" if values.get("why_not") else values.get("difference", ""),
        marks=[mark.replace(" ", "-") for mark in (standing, "provisional" if one_seed else "") if mark],
        why_not=values.get("why_not", ""),
        runs=runs,
    )


def other_tables(present: Present, paper: str) -> list[PlainTable]:
    """Return the tables of sentences, transcripts and layer types, without rows if they are not made."""
    record, found = present.project.papers[paper], []
    kinds = ((ExampleTable, record.examples), (TranscriptTable, record.transcripts), (LayerTable, record.layer_costs))
    for kind, entries in kinds:
        for name, entry in entries.items():
            path = present.path(kind(paper, name))
            dataset = getattr(entry, "scored_on", getattr(entry, "dataset", None))
            shown = dataset is None or present.is_shown(present.project.stand_in(dataset))
            header, *rows = read_csv(path) if path.exists() and shown else [[]]
            why = "" if shown else " Its text may not be passed on: it is shown by `reprise site --private` only."
            found.append(PlainTable(name, entry.caption.strip() + why, header, rows))
    return found


def read_csv(path: Path) -> list[list[str]]:
    """Return the cells of a CSV file, row by row."""
    with open(path, encoding="utf-8", newline="") as file:
        return [[from_text(cell) for cell in row] for row in csv.reader(file)] or [[]]

"""Tables as pages show them: cells with a verdict in words and colour, their runs, and notes below."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.analysis.cells.cell import is_ours, short
from pipeline.analysis.cells.scores import ScoreCell
from pipeline.core.artifacts import ExampleTable, LayerTable, RunId, Table, TranscriptTable
from pipeline.core.csv_file import from_text
from pipeline.core.errors import UserError
from pipeline.metrics import metric_named
from pipeline.report.filled_table import NOT_RUN, FilledTable, fill
from pipeline.report.markdown import note, scale_rules
from pipeline.report.site.charts import Chart, comparison
from pipeline.report.site.present import Present

WORDS = {
    "agrees": "the printed number lies in our interval",
    "higher": "ours is higher than the printed number: it lies below our interval",
    "lower": "ours is lower than the printed number: it lies above our interval",
    "not-comparable": "not comparable with the printed number",
    "provisional": "one seed: the spread between trainings is not known",
    "primary": "named before any run as one by which the paper stands or falls",
    "not-run": "not run yet",
    "failed": "a run of it failed",
    "cited": "the paper cites it; it is not ours to run",
}
"""What each mark of a cell means."""
SHORT = {"not-comparable": "n/c", "provisional": "1 seed", "not-run": "not run"}
"""How a mark is written in a cell, where it is not by its name."""


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
        return "; ".join([*(WORDS[mark] for mark in self.marks), *filter(None, [self.why_not])])


@dataclass(frozen=True)
class ShownTable:
    """A measured table. rows: labels, settings, cells by name, deviations by number, status."""

    name: str
    caption: str
    labels: list[str]
    settings: list[str]
    cells: list[str]
    rows: list[dict]
    notes: dict[str, str]
    rules: list[str]
    columns: dict[str, list[str]]
    """Of each cell, which of printed, ours, interval and difference any row has."""

    @property
    def marks(self) -> list[str]:
        """Those that any cell has."""
        found = {mark for row in self.rows for cell in row["cells"].values() for mark in cell.marks}
        return [mark for mark in WORDS if mark in found]


@dataclass(frozen=True)
class PlainTable:
    """Any other table, as its CSV has it."""

    name: str
    caption: str
    header: list[str]
    rows: list[list[str]]


def measured_tables(present: Present, paper: str) -> dict[str, FilledTable | str]:
    """The tables of a paper that can be measured here, or why one can't be filled in."""
    found: dict[str, FilledTable | str] = {}
    for name in present.project.tables_here(paper):
        try:
            found[name] = fill(present.project, paper, name)
        except UserError as error:
            found[name] = str(error)
    return found


def shown_table(present: Present, paper: str, name: str, filled: FilledTable) -> ShownTable:
    entry, cells = filled.entry, {key: filled.values(key) for key in filled.entry.cells}
    rows = []
    for index, row in enumerate(filled.table.rows):
        shown = {key: shown_cell(present, filled, key, index, cells[key][index]) for key in cells}
        deviations = [int(number) for number in filled.runs["deviations"][index].split()]
        rows.append(
            {
                "labels": [row[label] for label in entry.label],
                "settings": [row[setting] for setting in entry.settings],
                "cells": shown,
                "deviations": deviations,
                "status": filled.runs["status"][index],
                "hours": filled.runs["device_hours"][index],
                "steps": filled.runs["steps"][index],
            }
        )
    kinds = ("printed", "ours", "interval", "difference")
    columns = {
        key: [kind for kind in kinds if kind == "ours" or any(getattr(row["cells"][key], kind) for row in rows)]
        for key in cells
    }
    return ShownTable(
        name=name,
        caption=entry.caption.strip(),
        labels=list(entry.label),
        settings=list(entry.settings),
        cells=list(cells),
        rows=rows,
        notes={key: note(filled, key) for key in cells},
        rules=scale_rules(present.project, filled.all_runs),
        columns=columns,
    )


def shown_cell(present: Present, filled: FilledTable, name: str, index: int, values: Mapping[str, str]) -> Shown:
    cell = filled.entry.cells[name]
    runs, is_score = cell.runs(filled.table.view, filled.table.rows[index]), isinstance(cell, ScoreCell)
    standing, as_shown = filled.standing(name, index), str if is_score else short
    if standing == NOT_RUN and "failed" in {present.status(run) for run in runs}:
        standing = "failed"
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


def headline(tables: Mapping[str, FilledTable | str]) -> tuple[str, Chart] | None:
    """The first score with a printed number that something was measured for, else the first: its table, and a chart."""
    found = [
        (name, cell, compared(filled, key))
        for name, filled in tables.items()
        if not isinstance(filled, str)
        for key, cell in filled.entry.cells.items()
        if isinstance(cell, ScoreCell) and cell.printed
    ]
    if not found:
        return None
    measured = [one for one in found if any(row["ours"] is not None for row in one[2])]
    name, cell, rows = (measured or found)[0]
    apart = any(row["why_not"] for row in rows)
    metric = f"{cell.metric}, {metric_named(cell.metric).better} is better"
    return name, comparison(rows, metric, "not comparable: what counts is the order of rows" if apart else "")


def compared(filled: FilledTable, key: str) -> list[dict]:
    rows = []
    for index, values in enumerate(filled.values(key)):
        if is_ours(filled.table.rows[index]) and (values["printed"] or values["ours"]):
            numbers = {
                name: float(values[name]) if values[name] else None for name in ("printed", "ours", "low", "high")
            }
            rows.append({"label": filled.names[index], "why_not": values.get("why_not", ""), **numbers})
    return rows


def other_tables(present: Present, paper: str) -> list[PlainTable]:
    """Tables of sentences, transcripts and layer types, as far as they were made."""
    record, found = present.project.papers[paper], []
    kinds = ((ExampleTable, record.examples), (TranscriptTable, record.transcripts), (LayerTable, record.layer_costs))
    for kind, entries in kinds:
        for name, entry in entries.items():
            path, dataset = (
                present.path(kind(paper, name)),
                getattr(entry, "scored_on", getattr(entry, "dataset", None)),
            )
            shown = dataset is None or present.is_shown(present.project.stand_in(dataset))
            header, *rows = read_csv(path) if path.exists() and shown else [[]]
            why = "" if shown else " Its text may not be passed on: it is shown by `reprise site --private` only."
            found.append(PlainTable(name, entry.caption.strip() + why, header, rows))
    return found


def read_csv(path: Path) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return [[from_text(cell) for cell in row] for row in csv.reader(file)] or [[]]


def files_of(present: Present, paper: str, name: str) -> Path:
    return present.path(Table(paper, name))

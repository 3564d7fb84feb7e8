"""Tables as pages show them: cells with a verdict in words and colour, their runs, and notes below."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.analysis.cells.cell import short, shown_interval
from pipeline.analysis.cells.scores import GainCell, ScoreCell
from pipeline.core.artifacts import ExampleTable, LayerTable, RunId, TranscriptTable
from pipeline.core.errors import UserError, count_of
from pipeline.core.json_csv import from_text
from pipeline.report.filled_table import INCOMPLETE, NOT_RUN, NOT_SCORED, UNFINISHED, FilledTable, fill
from pipeline.report.labels import METRICS, SYMBOLS, column_titles, with_minus, with_names
from pipeline.report.site.site_data import DONE, SiteData
from pipeline.report.table import column_remark, scale_rules
from pipeline.report.text_tables import shown_output
from pipeline.workflow.targets import snakemake_command

MARK_MEANINGS = {
    "agrees": "the printed number is in our interval",
    "higher": "our number is higher: the printed one is below our interval",
    "lower": "our number is lower: the printed one is above our interval",
    "not-comparable": "not comparable with the printed number",
    "provisional": "the run-to-run variance is not known",
    "primary": "named before any run as a claim that decides about the paper",
    "not-run": "no training was started",
    "incomplete": "some trainings were not started",
    "under-way": "a training is not finished",
    "not-scored": "trained, but its scores are missing, or other settings decoded what they score",
    "failed": "an error ended a training",
    "cited": "by the paper; not trained here",
}
"""Meanings of the marks of cells."""
MARK_LABELS = {"not-comparable": "n/c", "provisional": "1 seed", "not-run": "not run", "not-scored": "not scored"}
MARK_LABELS |= {"under-way": "under way"}
"""Text of the marks that are not written by name."""
COMPARED = ("agrees", "higher", "lower", "not-comparable")
"""Marks of cells beside a printed number."""
CELL_PARTS = ("ours", "printed", "interval", "difference")
"""Parts of a cell, in the order of their columns."""
LABEL_TITLES = {"row_id": "model", "arm": "variant", "target_data_pct": "target data, %"}
"""Titles of label columns that a reader would not understand."""
HIDDEN = ("run", "source")
"""Columns of other tables that are for programs."""


@dataclass(frozen=True)
class ShownCell:
    """A cell as its page shows it.

    Attributes:
        printed: The paper's number.
        ours: Our number; empty if it is missing.
        spread: Standard deviation over seeds.
        difference: Ours minus printed, if they are comparable.
        marks: Names of its badges, which are classes of the style sheet.
        why_not: Why it is not comparable.
        runs: The runs behind our number, or behind the mark in its place, that have a page.
    """

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
        return "; ".join([*(MARK_MEANINGS[mark] for mark in self.marks), *filter(None, [self.why_not])])


@dataclass(frozen=True)
class ShownRow:
    """A row of a measured table.

    Attributes:
        settings: Its settings, in the order of the table's.
        deviations: Numbers of the deviations that concern it.
        status: State of its runs.
        hours: Device hours of its trainings.
        steps: Steps of its trainings.
    """

    name: str
    settings: list[str]
    cells: dict[str, ShownCell]
    deviations: list[int]
    status: str
    hours: str
    steps: str


@dataclass(frozen=True)
class ShownTable:
    """A measured table.

    Attributes:
        label: Title of the column of names.
        settings: Symbols of the settings.
        titles: Title of each cell.
        notes: Metric, data and signature of each cell, by its title.
        remarks: Titles of the cells that share a remark on stand-ins or comparability, by the remark.
        rules: Rules of the scale that changed a setting.
        columns: Parts of each cell that any row has.
    """

    name: str
    caption: str
    label: str
    settings: list[str]
    titles: dict[str, str]
    rows: list[ShownRow]
    notes: dict[str, str]
    remarks: dict[str, list[str]]
    rules: list[str]
    columns: dict[str, list[str]]

    @property
    def shared(self) -> list[str]:
        """Return the marks that every measured cell has; the page shows them once, above the table."""
        marked = [cell for row in self.rows for cell in row.cells.values() if cell.ours and cell.marks]
        printed = [cell for cell in marked if cell.printed]
        scores = [cell for cell in marked if cell.interval]
        groups = {mark: printed if mark in COMPARED else scores for mark in MARK_MEANINGS}
        return [mark for mark, cells in groups.items() if len(cells) > 1 and all(mark in cell.marks for cell in cells)]

    @property
    def shared_deviations(self) -> list[int]:
        """Return the deviations that concern every row of ours; the page shows them once, above the table."""
        ours = [set(row.deviations) for row in self.rows if row.status != "cited"]
        return sorted(set.intersection(*ours)) if len(ours) > 1 else []

    @property
    def marks(self) -> list[str]:
        """Return the marks that cells show."""
        found = {mark for row in self.rows for cell in row.cells.values() for mark in cell.marks}
        return [mark for mark in MARK_MEANINGS if mark in found and mark not in self.shared]

    @property
    def missing(self) -> int:
        """Return how many rows of ours have a number missing."""
        return sum(row.status not in (DONE, "cited") for row in self.rows)


@dataclass(frozen=True)
class PlainTable:
    """Any other table, as its CSV has it.

    Attributes:
        header: Names of the columns.
        rows: The cells; none also if the table is not made (then there is no header), or if its text is hidden.
        command: Makes the table; empty if its text is hidden.
    """

    name: str
    caption: str
    header: list[str]
    rows: list[list[str]]
    command: str

    @property
    def shared(self) -> dict[str, str]:
        """Return the columns with one value in all of several rows, which the page shows once, below the table."""
        columns = zip(self.header, zip(*self.rows, strict=True), strict=True) if len(self.rows) > 1 else ()
        shown = ((name, cells) for name, cells in columns if name not in HIDDEN)
        return {name: cells[0] for name, cells in shown if len({*cells}) == 1 and cells[0]}

    @property
    def places(self) -> list[int]:
        """Return the numbers of the columns that the page shows, from 0: neither shared nor about files."""
        return [n for n, name in enumerate(self.header) if name not in self.shared and name not in HIDDEN]


def measured_tables(site: SiteData, paper: str) -> dict[str, FilledTable | str]:
    """Return each measured table of a paper, or the reason why it cannot be filled in at this scale."""
    found: dict[str, FilledTable | str] = {}
    for name in site.project.tables_here(paper):
        try:
            found[name] = fill(site.project, paper, name, site.folders(paper))
        except UserError as error:
            found[name] = str(error)
    return found


def shown_table(site: SiteData, paper: str, name: str, filled: FilledTable) -> ShownTable:
    """Return a table in the words and marks of its page."""
    entry = filled.entry
    order = sorted(entry.cells, key=lambda key: not isinstance(entry.cells[key], ScoreCell))
    titles = column_titles(site.project, {key: entry.cells[key] for key in order})
    rows = [shown_row(site, paper, filled, index, order) for index in range(len(filled.names))]
    columns = {
        key: [kind for kind in CELL_PARTS if kind == "ours" or any(getattr(row.cells[key], kind) for row in rows)]
        for key in order
    }
    return ShownTable(
        name=name,
        caption=entry.caption.strip(),
        label=", ".join(LABEL_TITLES.get(part, part.replace("_", " ")) for part in entry.label),
        settings=list(entry.settings),
        titles=titles,
        rows=rows,
        notes={titles[key]: with_names(cell.note(filled.cells[key], ""), METRICS) for key, cell in entry.cells.items()},
        remarks=shared_remarks({titles[key]: column_remark(filled, key) for key in order}),
        rules=scale_rules(site.project, filled.all_runs),
        columns=columns,
    )


def shown_row(site: SiteData, paper: str, filled: FilledTable, index: int, order: Sequence[str]) -> ShownRow:
    """Return row `index` in the words and marks of its page; `order` names its cells."""
    cells = {key: shown_cell(site, filled, key, index) for key in order}
    row, status = filled.table.rows[index], filled.runs["status"][index]
    runs = [run for key in order for run in filled.entry.cells[key].runs(filled.table.view, row)]
    if status in UNFINISHED and (state := row_state(site, runs)) != NOT_SCORED:
        status = state
    return ShownRow(
        name=row_name(site, paper, row.get("system", ""), filled.names[index]),
        settings=settings(site, filled, index, runs),
        cells=cells,
        deviations=[int(number) for number in filled.runs["deviations"][index].split()],
        status=DONE if status == "run" else status,
        hours=filled.runs["device_hours"][index],
        steps=filled.runs["steps"][index],
    )


def row_state(site: SiteData, runs: Sequence[RunId]) -> str:
    """Return why a row lacks a run, or how many are done; `not scored` if all are."""
    states = [site.status(run) for run in dict.fromkeys(runs)]
    why = site.why_missing(runs)
    return f"{states.count(DONE)} of {count_of(len(states), 'run')} done" if why == INCOMPLETE else why


def shared_remarks(remarks: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names that share each remark, by the remark, without empty ones."""
    found: dict[str, list[str]] = {}
    for name, remark in remarks.items():
        if remark:
            found.setdefault(remark, []).append(name)
    return found


def row_name(site: SiteData, paper: str, system: str, label: str) -> str:
    """Return the label of a row; one that is only a system's identifier is followed by its description."""
    if label != system:
        return label
    owner, name = site.project.locate(system, paper)
    description = site.project.papers[owner].systems[name].description
    return description if description.startswith(label) else f"{label}: {description}"


def settings(site: SiteData, filled: FilledTable, index: int, runs: list[RunId]) -> list[str]:
    """Return the settings of a row: of the model that ran, with the printed value if it differs."""
    row, found = filled.table.rows[index], []
    for symbol in filled.entry.settings:
        text, key = row[symbol], SYMBOLS.get(symbol)
        if text and key and runs:
            section, _, name = key.partition(".")
            specs = (site.spec(runs[0], printed) for printed in (False, True))
            here, printed = (getattr(getattr(spec, section), name, None) for spec in specs)
            if is_number(text) and printed is not None and float(printed) == float(text) and here != printed:
                text = f"{here} ({text} printed)"
        found.append(text)
    return found


def is_number(text: str) -> bool:
    """Return whether a cell of a printed table is a number."""
    return text.replace(".", "", 1).isdigit()


def shown_cell(site: SiteData, filled: FilledTable, name: str, index: int) -> ShownCell:
    """Return cell `name` of row `index` in the words and marks of its page."""
    cell, values = filled.entry.cells[name], filled.cells[name][index]
    runs, is_score = cell.runs(filled.table.view, filled.table.rows[index]), isinstance(cell, ScoreCell)
    standing, as_shown = filled.verdict(name, index), str if isinstance(cell, ScoreCell | GainCell) else short
    if standing in (NOT_RUN, INCOMPLETE):
        standing = site.why_missing(runs)
    linked = DONE if values["ours"] or standing == NOT_SCORED else standing
    one_seed = is_score and bool(values["ours"]) and len(runs) == 1
    return ShownCell(
        printed=with_minus(as_shown(values["printed"])),
        ours=with_minus(as_shown(values["ours"])),
        spread=values.get("spread", ""),
        interval=with_minus(shown_interval(values.get("low", ""), values.get("high", ""))),
        difference="" if values.get("why_not") else with_minus(values.get("difference", "")),
        marks=[mark.replace(" ", "-") for mark in (standing, "provisional" if one_seed else "") if mark],
        why_not=values.get("why_not", ""),
        runs=[run for run in runs if site.status(run) == linked != NOT_RUN],  # one that was not started has no page
    )


def other_tables(site: SiteData, paper: str) -> list[PlainTable]:
    """Return the tables of sentences, transcripts and layer types, without rows if they are not made."""
    record, found = site.project.papers[paper], []
    kinds = ((ExampleTable, record.examples), (TranscriptTable, record.transcripts), (LayerTable, record.layer_costs))
    for kind, entries in kinds:
        for name, entry in entries.items():
            path = site.path(kind(paper, name))
            dataset = getattr(entry, "scored_on", getattr(entry, "dataset", None))
            shown = dataset is None or site.is_shown(site.project.stand_in(dataset))
            header, *rows = read_csv(path) if path.exists() and shown else [[]]
            command = snakemake_command(site.project, path) if shown else ""
            named = rows if kind is LayerTable else with_empty_named(header, rows)
            found.append(PlainTable(name, entry.caption.strip(), header, named, command))
    return found


def with_empty_named(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Name empty outputs in the `rows` of a table with this `header`: without words, or not run if without a score."""
    tables = (dict(zip(header, row, strict=False)) for row in rows)  # a file cut short is shown as it is
    score = "word_errors" if "word_errors" in header else "bleu"
    return [[*(row | {"ours": shown_output(row.get("ours", ""), row.get(score, ""))}).values()] for row in tables]


def read_csv(path: Path) -> list[list[str]]:
    """Return the cells of a CSV file, row by row; all rows are as long as the first, also if the file was cut short."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = [[from_text(cell) for cell in row] for row in csv.reader(file)] or [[]]
    return [[*row, *[""] * len(rows[0])][: len(rows[0])] for row in rows]

"""Tables of a paper: each printed number beside ours, as CSV, and as Markdown with notes that fits a terminal."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from pandas import DataFrame, concat

from pipeline.analysis.cells.cell import Cell, is_ours
from pipeline.core.artifacts import RunId, Trained
from pipeline.core.errors import count_of
from pipeline.papers.comparability import Reason, format_reasons
from pipeline.papers.paper import Deviation
from pipeline.papers.project import Project, ProjectOptions
from pipeline.papers.reading import Reading
from pipeline.papers.scale import Rule
from pipeline.report.filled_table import UNFINISHED, FilledTable, fill
from pipeline.report.labels import seeds_in_words
from pipeline.report.markup import grid, literal, paragraphs, prose, write_report

log = logging.getLogger(__name__)


def write_table(*, paper: str, table: str, out: Path, project: ProjectOptions) -> None:
    """Compare the scores of a table with the numbers that the paper prints.

        python -m pipeline table --paper weighted --table table2 --out results/demo/weighted/table2.csv

    Write the CSV and, beside it, a Markdown file to read in a terminal.

    Args:
        paper: Name of a paper in workflow/papers.
        table: Name of a table of the paper.
        out: CSV to write, with a Markdown file beside it.
        project: The project and its settings.
    """
    loaded = project.load([paper])
    filled = fill(loaded, paper, table)
    write_report(out, filled.frame, render(loaded, paper, table, filled))
    statuses = filled.runs["status"]
    log.info("%s: %s, %d without all numbers", out, count_of(len(statuses), "row"), statuses.isin(UNFINISHED).sum())


def render(project: Project, paper: str, name: str, filled: FilledTable) -> str:
    """Return a table in Markdown, with its caption above, and data, metrics, scale and deviations below."""
    return paragraphs(
        f"# {literal(project.papers[paper].title)}: {name}, scale {project.config.scale}",
        prose(filled.entry.caption),
        table_grid(filled, project.papers[paper].readings),
        notes_below(project, paper, filled),
    )


def table_grid(filled: FilledTable, readings: dict[str, Reading]) -> str:
    """Return labels, settings, cells and cost of each row as a Markdown table."""
    columns = [filled.labels]
    for name, cell in filled.entry.cells.items():
        shown = DataFrame([cell.shown(row) for row in filled.cells[name]])
        columns.append(shown.add_prefix(f"{name} "))
    facts = filled.runs[["steps", "device_hours", "status", "deviations"]]
    columns.append(facts.rename(columns={"device_hours": "hours", "deviations": "notes"}))
    columns.append(DataFrame({"reading": [other_choices(readings, text) for text in filled.runs["readings"]]}))
    frame = concat(columns, axis=1)
    return grid([str(column) for column in frame], frame.to_numpy().tolist())


def other_choices(readings: dict[str, Reading], choices: str) -> str:
    """Return the choices of a row that are not the default."""
    pairs = filter(None, choices.split("; "))
    return "; ".join(pair for pair in pairs if pair.split()[1] != readings[pair.split()[0]].default)


def reading_lines(readings: dict[str, Reading], filled: FilledTable) -> list[str]:
    """Return Markdown lines on the readings that the rows of a table follow; none without readings."""
    used = {reading.split()[0] for text in filled.runs["readings"] for reading in text.split("; ") if reading}
    lines = []
    for name in filter(used.__contains__, readings):
        reading = readings[name]
        passage = f'({reading.where}): "{reading.passage}"'
        lines += [
            f"- {name} {literal(passage)}",
            f"  - default, chosen {reading.chosen}: {literal(f'{reading.default}, {reading.why}')}",
            *(f"  - {key}: {literal(f'{choice.means} ({choice.support})')}" for key, choice in reading.choices.items()),
        ]
    return ["Readings; a row names those that are not the default:", "", *lines, ""] if lines else []


def notes_below(project: Project, paper: str, filled: FilledTable) -> str:
    """Return Markdown notes below a table: data, metrics, scale rules, readings and deviations."""
    lines = ["Data and metrics:", "", *(f"- {name}: {column_note(filled, name)}" for name in filled.cells)]
    seeds = seeds_in_words(map(Trained, filled.all_runs))
    lines += [
        "- 95 %: bootstrap over the sentences of the test set; ±: standard deviation over seeds and, where a row has "
        f"several, decodings.{f' Seeds: {seeds}.' if seeds else ''}",
        "- hours: device hours of training, restarts included, summed over the runs of a row.",
        "",
        f"Scale `{project.config.scale}`: {literal(project.scale.description)}",
        "",
        *(f"- {literal(line)}" for line in scale_rules(project, filled.all_runs)),
        "",
        *reading_lines(project.papers[paper].readings, filled),
    ]
    return "\n".join(lines + deviation_lines(project.papers[paper].deviations, filled))


def deviation_lines(deviations: list[Deviation], filled: FilledTable) -> list[str]:
    """Return Markdown lines on the deviations that concern a row of a table; none without any."""
    cited = {number for text in filled.runs["deviations"] for number in text.split()}
    lines = []
    for number, deviation in enumerate(deviations, start=1):
        if str(number) not in cited:
            continue
        changes = (
            f" Not comparable, as this changes the {' and the '.join(deviation.changes)}." if deviation.changes else ""
        )
        lines.append(
            f"{number}. {literal(f'Paper: {deviation.paper} Here: {deviation.here} Why: {deviation.why}')}{changes}"
        )
    return ["Deviations:", "", *lines] if lines else []


def column_note(filled: FilledTable, name: str) -> str:
    """Return a Markdown line on a column: its metric, substituted data, and why it is not comparable."""
    remark = column_remark(filled, name)
    values = [{key: literal(str(value)) for key, value in row.items()} for row in filled.cells[name]]
    return filled.entry.cells[name].note(values, f"; {remark}" if remark else "")


def column_remark(filled: FilledTable, name: str) -> str:
    """Name the substituted data of a column, and why it is not comparable, as part of a sentence; may be empty."""
    cell, reasons = filled.entry.cells[name], filled.reasons[name]
    if cell.printed:
        return why_not_comparable(filled, cell, reasons)
    return format_reasons([reason for row in reasons for reason in row if reason.is_stand_in])


def why_not_comparable(filled: FilledTable, cell: Cell, reasons: Sequence[Sequence[Reason]]) -> str:
    """Explain why rows are not comparable, and name them if not all are, as part of a sentence; may be empty."""
    printed = [index for index, row in enumerate(filled.table.rows) if is_ours(row) and cell.printed_in(row)]
    differing = [index for index in printed if reasons[index]]
    if not differing:
        return ""
    names = ", ".join(literal(" ".join(filter(None, map(str, filled.labels.loc[index])))) for index in differing)
    where = "" if len(differing) == len(printed) else f"in {names}: "
    why = format_reasons([reason for index in differing for reason in reasons[index]])
    return f"{where}not comparable with the printed number, as {why}"


def scale_rules(project: Project, of_runs: Iterable[RunId]) -> list[str]:
    """Return a line for each rule of the scale that changes a setting of runs, or of runs whose weights they load."""
    runs = set(of_runs)
    runs |= {taken for run in runs for taken in project.weight_sources(run).values()}
    runs = {run for run in runs if not project.papers[run.paper].as_published}
    if not runs:
        return []
    names = dict.fromkeys(name for run in sorted(runs, key=str) for name in project.lineage(run.paper, run.system))
    present = {
        section: {key for run in runs for key, value in project.section(run, section) if value is not None}
        for section in ("model", "training")
    }
    described = []
    systems = {name: project.scale.systems[name] for name in names if name in project.scale.systems}
    for system, rules in {"": project.scale, **systems}.items():
        for section in ("model", "fusion", "training", "decoding"):
            for key, rule in getattr(rules, section).items():
                if key in present.get(section, {key}):
                    described.append(f"{system}{': ' if system else ''}{section}.{key} {rule_in_words(rule)}")
    return described


def rule_in_words(rule: Rule) -> str:
    """Describe what a rule of the scale does to a setting."""
    words = {
        "divided by": rule.divide,
        "multiplied by": rule.multiply,
        "set to": rule.set,
        "at least": rule.minimum,
        "at most": rule.maximum,
    }
    values = {word: value for word, value in words.items() if value is not None}
    shown = (f"{word} {f'{value:g}' if isinstance(value, float) else value}" for word, value in values.items())
    return ", ".join(shown) + (f" ({rule.why})" if rule.why else "")

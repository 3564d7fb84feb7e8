"""The command `show`: tables of printed values, ours and verdicts, at most 100 columns wide."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, combinations
from pathlib import Path
from textwrap import fill as fill_text

from pipeline.analysis.cells.cell import NOT_COMPARABLE, is_ours
from pipeline.analysis.cells.scores import ScoreCell
from pipeline.analysis.claims.verdicts import ClaimResult
from pipeline.core.artifacts import Table
from pipeline.core.errors import UserError, count_of
from pipeline.core.schema import require_known
from pipeline.papers.paper import Paper
from pipeline.papers.project import Project, ProjectOptions
from pipeline.report.claims import render as render_claims, results_in_words, row_of, tally
from pipeline.report.filled_table import UNFINISHED, FilledTable, fill
from pipeline.report.markup import grid, shortened
from pipeline.report.table import render
from pipeline.workflow.failures import TRAIN_LOG, failure_of
from pipeline.workflow.graph import Graph, runs_in
from pipeline.workflow.live_work import LiveWork
from pipeline.workflow.targets import only_at, other_scales, reports_asked_for, snakemake_command

WIDTH = 100
LABEL = 34


def show(target: str | None = None, table: str | None = None, *, project: ProjectOptions, wide: bool = False) -> None:
    """Show a table in a terminal, with its notes.

        reprise show weighted table2
        reprise show weighted claims
        reprise show results/demo/attention/table3.csv

    Reads what `table` and `claims` read, and writes nothing. --wide shows all columns and notes of the Markdown file.
    A table without scores is always shown in full.

    Args:
        target: Paper, table of the paper in config.yaml, or file in results/; by default that paper.
        table: Table of the named paper, or `claims`; by default table2, else the paper's first.
        project: The project and its settings.
        wide: Show every column and note, however wide.
    """
    loaded = project.load()
    show_table(loaded, *paper_and_table(loaded, target, table), wide)


def paper_and_table(project: Project, target: str | None, table: str | None) -> tuple[str, str | None]:
    """Return the paper and the table that a user names, as described in `show`; None means the usual table.

    Raises:
        UserError: There is no such paper, table or file in results/.
    """
    configured = project.config.paper
    if table is None and target is not None and target not in project.papers:
        if "/" in target:
            report, *_ = reports_asked_for(Graph(project), target)
            return report.paper, Path(target).stem
        require_known(target, {*project.papers, *report_names(project.papers[configured])}, "TARGET")
        return configured, target
    paper = target or configured
    require_known(paper, project.papers, "TARGET")
    if table is not None:
        require_known(table, report_names(project.papers[paper]), f"{paper} TABLE")
    return paper, table


def report_names(record: Paper) -> set[str]:
    """Return the names of a paper's reports."""
    return {"claims", *record.tables} | without_scores(record)


def without_scores(record: Paper) -> set[str]:
    """Return the names of a paper's reports that are no tables of scores."""
    return {*record.examples, *record.transcripts, *record.layer_costs, *record.figures}


def show_table(project: Project, paper: str, table: str | None, wide: bool) -> None:
    """Print a table or the claims of a paper.

    Args:
        project: The project at its scale.
        paper: Name of the paper.
        table: Name of a table, or `claims`; None means the usual table.
        wide: Show every column and note.

    Raises:
        UserError: The paper has no such table at this scale.
    """
    table = table or usual_table(project, paper)
    title = f"{project.papers[paper].title}: {table}, scale {project.config.scale}\n"
    if table == "claims":
        results = results_in_words(project, paper)
        print(render_claims(project, paper, results) if wide else f"{title}\n{overview(results)}")
        return
    if scales := other_scales(project, paper, table):
        raise UserError(f"{table}: {only_at(scales)}")
    record = project.papers[paper]
    if table in without_scores(record):
        file = project.layout.results / paper / f"{table}.md"
        raise UserError(f"{table}: is no table of scores; `{snakemake_command(project, file)}` writes {file}")
    filled = fill(project, paper, table)
    if wide or not any(isinstance(cell, ScoreCell) for cell in filled.entry.cells.values()):
        print(render(project, paper, table, filled))
        return
    print(title)
    print(narrow(filled))
    print("\n" + meaning(project, paper, table, filled))


def size_of_test_set(filled: FilledTable, name: str, ours: Sequence[int]) -> str:
    """Return how many sentences cell `name` of the rows `ours` is scored on, in words; empty if there is no score."""
    cell, rows, values = filled.entry.cells[name], filled.table.rows, filled.cells[name]
    assert isinstance(cell, ScoreCell)
    scored = next((rows[index] for index in ours if values[index]["ours"]), None)
    if scored is None:
        return ""
    runs, decodings = cell.runs(filled.table.view, scored), cell.decodings_of(scored)
    return f", scored on {filled.table.folders.sample(runs, decodings, cell).rows:,} sentences"


def usual_table(project: Project, paper: str) -> str:
    """Return the table that is shown by default: table2, else the first."""
    tables = list(project.tables_here(paper) or project.papers[paper].tables)
    return "table2" if "table2" in tables or not tables else tables[0]


def overview(claims: Sequence[ClaimResult]) -> str:
    """Return a table of claims with verdicts and our numbers, then the count of each verdict."""
    if not claims:
        return "The paper has no claims."
    names, found = [shortened(claim.name, LABEL) for claim in claims], [str(claim.verdict) for claim in claims]
    left = WIDTH - sum(max(map(len, column)) + 3 for column in (["claim", *names], ["verdict", *found])) - 4
    ours = [row_of(claim)["ours"] for claim in claims]
    lines = [[name, verdict, shortened(text, left)] for name, verdict, text in zip(names, found, ours, strict=True)]
    return grid(["claim", "verdict", "ours"], lines) + f"\n\n{fill_text(f'{tally(claims)}.', WIDTH)}"


def narrow(filled: FilledTable) -> str:
    """Return as many score columns as fit, at least the first: printed, ours with interval, verdict."""
    rows = range(len(filled.table.rows))
    labels = [shortened(name, LABEL) for name in filled.names]
    scores = [name for name, cell in filled.entry.cells.items() if isinstance(cell, ScoreCell)]
    columns = {name: [column(filled, name, index) for index in rows] for name in scores}
    # If nothing is printed, `grid` drops that column, and `ours` must name the score.
    ours = {name: "ours" if any(row[0] for row in columns[name]) else f"{name} ours" for name in scores}
    verdict = "{} verdict" if len(scores) > 1 else "verdict"
    headers = {name: [f"{name} printed", ours[name], verdict.format(name)] for name in scores}
    widths = [max(map(len, labels)) + 4, *(width(headers[name], columns[name]) for name in scores)]
    fitting = sum(total <= WIDTH for total in accumulate(widths)) - 1
    shown = scores[: max(1, fitting)]
    header = ["", *(title for name in shown for title in headers[name])]
    room = max(LABEL, WIDTH - 4 - sum(widths[1 : len(shown) + 1]))
    labels = [shortened(name, room) for name in filled.names]
    lines = [[labels[index], *(value for name in shown for value in columns[name][index])] for index in rows]
    others = ", ".join(scores[len(shown) :])
    left_out = fill_text(f"(further scores: {others}; --wide shows all)", WIDTH) if others else ""
    return f"{grid(header, lines)}\n{left_out}".rstrip("\n")


def width(header: list[str], rows: list[list[str]]) -> int:
    """Return the width of columns as `grid` draws them from `header` and `rows`, in characters, none for empty ones."""
    return sum(max(map(len, cells)) + 3 for cells in zip(header, *rows, strict=True) if any(cells[1:]))


def column(filled: FilledTable, name: str, index: int) -> list[str]:
    """Return the printed value, ours with its interval, and the verdict of cell `name` in row `index` from 0."""
    values = filled.cells[name][index]
    spread = f" ± {values['spread']}" if values.get("spread") else ""
    interval = f" ({values['low']}–{values['high']})" if values["low"] else ""
    return [values["printed"], values["ours"] + spread + interval, filled.verdict(name, index)]


def meaning(project: Project, paper: str, table: str, filled: FilledTable) -> str:
    """Describe how the rows compare, how large the models were, and which command makes what is missing.

    Args:
        project: The project at its scale.
        paper: Name of the paper.
        table: Name of the table.
        filled: A table of the paper with a score.

    Returns:
        The sentences, in lines of at most `WIDTH` characters, and the command in a line of its own.
    """
    name = next(name for name, cell in filled.entry.cells.items() if isinstance(cell, ScoreCell))
    ours = [index for index, row in enumerate(filled.table.rows) if is_ours(row)]
    found = Counter(filled.verdict(name, index) or "without a printed number" for index in ours)
    verdicts = ", ".join(f"{count} {what}" for what, count in found.items())
    sizes = [record.parameters.total for run in filled.all_runs if (record := filled.table.folders.trained(run))]
    most = f" to {max(sizes):,}" if len(set(sizes)) > 1 else ""
    size = f"the models have {min(sizes):,}{most} parameters" if sizes else "none of their models is trained yet"
    target = Table(paper, table)
    is_finished = UNFINISHED.isdisjoint(filled.runs["status"])
    command = snakemake_command(project, project.layout.path(target))
    missing = "" if is_finished else f"\n`{command}` makes the missing numbers."
    missing = state_of_trainings(project, filled, target) + missing
    test_set = size_of_test_set(filled, name, ours)
    text = f"{count_of(len(ours), 'row')} to run: {verdicts}{test_set}. At scale {project.config.scale} {size}"
    return fill_text(f"{text}{order(filled, name, ours) if NOT_COMPARABLE in found else ''}.", WIDTH) + missing


def state_of_trainings(project: Project, filled: FilledTable, target: Table) -> str:
    """Return how many of the missing trainings are under way or failed, in a line of its own; empty if none.

    Args:
        project: The project at its scale.
        filled: A table.
        target: Its artifact; the trainings count on which it depends, such as those of language models.
    """
    live, trained = LiveWork(project.layout.work), filled.table.folders.trained
    needed = runs_in(Graph(project).closure([target]))
    missing = [project.layout.run(run) for run in needed if not trained(run)]
    busy = [folder for folder in missing if live.reason(folder)]
    failed = [folder for folder in missing if folder not in busy and failure_of(folder, folder / TRAIN_LOG)]
    counts = [f"{len(folders)} {state}" for folders, state in ((busy, "under way"), (failed, "failed")) if folders]
    return f"\nTrainings: {', '.join(counts)}; `reprise status` shows more." if counts else ""


def order(filled: FilledTable, name: str, rows: list[int]) -> str:
    """Return the end of a sentence on the order of rows, for numbers that are not comparable with printed ones.

    Args:
        filled: The table.
        name: Name of a column with scores.
        rows: Numbers of the rows that are ours.
    """
    cells = (filled.cells[name][index] for index in rows)
    known = [(float(cell["printed"]), float(cell["ours"])) for cell in cells if cell["printed"] and cell["ours"]]
    pairs = [(a, b) for a, b in combinations(known, 2) if a[0] != b[0]]
    alike = sum((a[0] - b[0]) * (a[1] - b[1]) > 0 for a, b in pairs)
    compared = f"; {alike} of {len(pairs)} pairs of rows are in the printed order" if pairs else ""
    return f", so compare the order of rows with the paper's, not their numbers{compared}"

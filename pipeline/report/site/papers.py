"""The page of a paper: its tables, figures, claims, open passages and deviations."""

from pathlib import Path
from typing import Any

from pipeline.analysis.cells.cell import is_ours
from pipeline.analysis.run_folders import NotRun
from pipeline.core.artifacts import Alignments, AttentionMaps, Figure, RunId, Table
from pipeline.core.errors import UserError
from pipeline.report.filled_table import FilledTable
from pipeline.report.markup import plain
from pipeline.report.site.claims import shown_claims
from pipeline.report.site.compare import compare_page, write_comparison
from pipeline.report.site.names import Labels
from pipeline.report.site.overview import Card, make_card
from pipeline.report.site.pages import Pages
from pipeline.report.site.readings import shown_readings
from pipeline.report.site.tables import SHORT, WORDS, measured_tables, other_tables, read_csv, shown_table
from pipeline.workflow.graph import flatten
from pipeline.workflow.targets import snakemake_command

CHARTED = 40
"""Rows of a figure's numbers that a page shows."""


def paper_page(paper: str) -> str:
    """Return the name of a paper's page."""
    return f"paper-{paper}.html"


def write_paper(pages: Pages, paper: str) -> tuple[Card, dict[RunId, dict[str, str]]]:
    """Write the page; return its card, and the tables in which each run stands."""
    present, record = pages.present, pages.present.project.papers[paper]
    tables = measured_tables(present, paper)
    filled = {name: table for name, table in tables.items() if not isinstance(table, str)}
    claims, view = present.project.claims[paper], present.view(paper)
    results = claims.evaluate(view, (NotRun, UserError), present.folders(paper))
    card = make_card(present, paper, results, filled)
    paths = {name: present.path(Table(paper, name)) for name in filled}
    pages.page(
        paper_page(paper),
        "paper.html",
        title=record.title,
        paper=paper,
        record=record,
        card=card,
        tables={name: shown_table(present, paper, name, table) for name, table in filled.items()},
        broken={name: why for name, why in tables.items() if isinstance(why, str)},
        comparisons={
            name: compare_page(paper, name)
            for name, table in filled.items()
            if write_comparison(pages, paper, name, table)
        },
        commands={name: snakemake_command(present.project, path) for name, path in paths.items()},
        downloads={
            name: pages.copy(path, f"tables/{paper}-{name}.csv") for name, path in paths.items() if path.exists()
        },
        others=other_tables(present, paper),
        figures=[figure(pages, paper, name) for name in record.figures],
        claims=shown_claims(Labels(view, filled), results, claims.scores),
        readings=shown_readings(present, paper, filled),
        words=WORDS,
        short=SHORT,
    )
    return card, standing(paper, filled)


def standing(paper: str, tables: dict[str, FilledTable]) -> dict[RunId, dict[str, str]]:
    """Return the links of the tables in which each run stands, by what they are called."""
    found: dict[RunId, dict[str, str]] = {}
    for name, filled in tables.items():
        for row in filled.table.rows:
            for cell in filled.entry.cells.values():
                for run in cell.runs(filled.table.view, row) if is_ours(row) else ():
                    found.setdefault(run, {})[f"{paper}, {name}"] = f"{paper_page(paper)}#{name}"
    return found


def figure(pages: Pages, paper: str, name: str) -> dict[str, Any]:
    """Return a figure with its numbers; if its text may not be shown, its caption alone."""
    present, product = pages.present, Figure(paper, name)
    svg, entry = present.path(product), present.project.figure(paper, name)
    quotes = any(isinstance(one, AttentionMaps | Alignments) for one in flatten(present.graph.inputs(product)))
    shown = not quotes or present.is_shown(present.project.stand_in(entry.dataset))
    made = shown and svg.exists() and svg.with_suffix(".csv").exists()
    header, *rows = read_csv(svg.with_suffix(".csv")) if made else [[]]
    return {
        "name": name,
        "caption": caption(svg.with_suffix(".md")) or entry.caption.strip(),
        "picture": pages.copy(svg, f"figures/{paper}-{name}.svg") if made else "",
        "numbers": pages.copy(svg.with_suffix(".csv"), f"figures/{paper}-{name}.csv") if made else "",
        "header": header,
        "rows": rows[:CHARTED],
        "all": len(rows),
        "hidden": not shown,
        "command": snakemake_command(present.project, svg),
    }


def caption(path: Path) -> str:
    """Return the text of a figure's Markdown without the picture and without backslashes."""
    if not path.exists():
        return ""
    text = path.read_text(encoding="utf-8").split("\n\n![")[0]
    return plain(text)

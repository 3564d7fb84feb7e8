"""The page of a paper, and its card on the home page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.analysis.cells.cell import RunCell, is_ours
from pipeline.core.artifacts import Alignments, AttentionMaps, Figure, RunId, Trained
from pipeline.report.filled_table import FilledTable
from pipeline.report.markup import plain
from pipeline.report.site.charts import Chart
from pipeline.report.site.claims import shown_claims, tally
from pipeline.report.site.compare import compare_page, write_comparison
from pipeline.report.site.pages import Pages
from pipeline.report.site.present import Present
from pipeline.report.site.readings import shown_readings
from pipeline.report.site.tables import (
    SHORT,
    WORDS,
    files_of,
    headline,
    measured_tables,
    other_tables,
    read_csv,
    shown_table,
)
from pipeline.workflow.graph import flat

CHARTED = 40
"""Rows of a figure's numbers that a page shows."""


@dataclass(frozen=True)
class Facts:
    """What a paper's runs took, in words; empty while none is done."""

    runs: int
    done: int
    device_hours: float
    began: str
    ended: str
    commits: list[str]
    hardware: list[str]
    datasets: list[tuple[str, str]]
    """(as the paper names it, what was used)"""


@dataclass(frozen=True)
class Card:
    paper: str
    record: Any
    claims: list[tuple[str, str, int]]
    headline: tuple[str, Chart] | None
    facts: Facts


def paper_page(paper: str) -> str:
    return f"paper-{paper}.html"


def write_paper(pages: Pages, paper: str) -> tuple[Card, dict[RunId, dict[str, str]]]:
    """The page; returns its card, and where each run stands in a table."""
    present, record = pages.present, pages.present.project.papers[paper]
    tables, claims = measured_tables(present, paper), shown_claims(present, paper)
    filled = {name: table for name, table in tables.items() if not isinstance(table, str)}
    card = Card(paper, record, tally(claims), headline(tables), facts(present, paper, filled))
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
        downloads={
            name: pages.copy(path, f"tables/{paper}-{name}.csv")
            for name in filled
            if (path := files_of(present, paper, name)).exists()
        },
        others=other_tables(present, paper),
        figures=[figure(pages, paper, name) for name in record.figures],
        claims=claims,
        readings=shown_readings(present, paper, filled),
        words=WORDS,
        short=SHORT,
    )
    return card, standing(paper, filled)


def standing(paper: str, tables: dict[str, FilledTable]) -> dict[RunId, dict[str, str]]:
    """Tables by run: what they are called, and where they are."""
    found: dict[RunId, dict[str, str]] = {}
    for name, filled in tables.items():
        for row in filled.table.rows if filled else ():
            for cell in filled.entry.cells.values():
                for run in cell.runs(filled.table.view, row) if is_ours(row) else ():
                    found.setdefault(run, {})[f"{paper}, {name}"] = f"{paper_page(paper)}#{name}"
    return found


def figure(pages: Pages, paper: str, name: str) -> dict[str, Any]:
    """A figure as it was drawn, with its numbers; of text that may not be shown its caption alone."""
    present, product = pages.present, Figure(paper, name)
    svg, entry = present.path(product), present.project.figure(paper, name)
    quotes = any(isinstance(one, AttentionMaps | Alignments) for one in flat(present.graph.inputs(product)))
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
    }


def caption(path: Path) -> str:
    """The text of a figure's Markdown, without the picture, its marks of literal text taken away."""
    if not path.exists():
        return ""
    text = path.read_text(encoding="utf-8").split("\n\n![")[0]
    return plain(text)


def facts(present: Present, paper: str, tables: dict[str, FilledTable]) -> Facts:
    graph = present.graph
    needed = graph.closure(graph.reports([paper]))
    runs = [product.run for product in needed if isinstance(product, Trained)]
    folders = present.folders(paper)
    trained = [record for run in runs if (record := folders.trained(run))]
    costs = [cost for run in runs if (cost := folders.cost(run))]
    starts = [start for cost in costs for start in cost.starts]
    cells = (cell for filled in tables.values() for cell in filled.entry.cells.values())
    named = {cell.dataset for cell in cells if isinstance(cell, RunCell)}
    return Facts(
        runs=len(runs),
        done=len(trained),
        device_hours=sum(cost.device_hours for cost in costs),
        began=min((start.started[:10] for start in starts), default=""),
        ended=max((start.stopped[:10] for start in starts), default=""),
        commits=sorted({str(record.provenance.get("commit", "")) for record in trained} - {""}),
        hardware=sorted({cost.hardware for cost in costs}),
        datasets=sorted((name, present.project.stand_in(name)) for name in named),
    )

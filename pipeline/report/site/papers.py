"""The page of a paper: its tables, figures, claims, open passages and deviations."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.analysis.cells.cell import is_ours
from pipeline.analysis.claims.verdicts import ClaimResult, Verdict
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.run_folders import NotRun
from pipeline.core.artifacts import Alignments, AttentionMaps, Figure, RunId, Table
from pipeline.core.errors import UserError
from pipeline.core.json_csv import csv_text
from pipeline.report.filled_table import FilledTable
from pipeline.report.labels import Labels, metric_title, pair_of, report_title, short_title, with_minus
from pipeline.report.markup import plain
from pipeline.report.site import compare, overview, readings
from pipeline.report.site.charts import DotChart, Number, differences
from pipeline.report.site.pages import Pages
from pipeline.report.site.site_data import SiteData, file_name, paper_page
from pipeline.report.site.tables import (
    MARK_LABELS,
    MARK_MEANINGS,
    ShownTable,
    measured_tables,
    other_tables,
    read_csv,
    shown_table,
)
from pipeline.workflow.graph import flatten
from pipeline.workflow.targets import snakemake_command

NOT_TESTED = "not tested here"
"""Name of the verdict on a claim that no further run at this scale would decide."""
CHARTED = 40
"""Rows of a figure's numbers that a page shows."""


def write_paper(pages: Pages, paper: str) -> tuple[overview.Card, dict[RunId, dict[str, str]]]:
    """Write the pages of a paper; return its card and, by run, the links of the tables that show it, by name."""
    site, record = pages.site, pages.site.project.papers[paper]
    tables = measured_tables(site, paper)
    filled = {name: table for name, table in tables.items() if not isinstance(table, str)}
    claims, view = site.project.claims[paper], site.view(paper)
    results = claims.evaluate(site.folders(paper), (NotRun, UserError))
    card = overview.make_card(site, paper, results, filled)
    paths = {name: site.path(Table(paper, name)) for name in filled}
    shown = {name: shown_table(site, paper, name, table) for name, table in filled.items()}
    pages.page(
        paper_page(paper),
        "paper.html",
        title=record.title,
        paper=paper,
        record=record,
        card=card,
        tables=shown,
        titles=common_titles(shown.values()),
        broken={name: why for name, why in tables.items() if isinstance(why, str)},
        comparisons={
            name: compare.compare_page(paper, name)
            for name, table in filled.items()
            if compare.write_comparison(pages, paper, name, table)
        },
        commands={name: snakemake_command(site.project, path) for name, path in paths.items()},
        downloads={name: write_table(pages, paper, name, table) for name, table in filled.items()},
        others=other_tables(site, paper),
        figures=[figure(pages, paper, name) for name in record.figures],
        claims=shown_claims(site, Labels(view), results, claims.scores),
        readings=readings.shown_readings(site, paper, filled),
        words=MARK_MEANINGS,
        short=MARK_LABELS,
    )
    return card, table_links(paper, short_title(record.title), filled)


def write_table(pages: Pages, paper: str, name: str, filled: FilledTable) -> str:
    """Write the CSV of a table that a page shows, and return its path; the one in results/ may be of other runs."""
    path = f"tables/{file_name(paper, name)}.csv"
    pages.write(path, csv_text(filled.frame).encode())
    return path


def common_titles(tables: Iterable[ShownTable]) -> dict[str, str]:
    """Return the title of each column, by its key, that all tables with such a column agree on."""
    found: dict[str, set[str]] = {}
    for table in tables:
        for key, title in table.titles.items():
            found.setdefault(key, set()).add(title)
    return {key: titles.pop() for key, titles in found.items() if len(titles) == 1}


def table_links(paper: str, title: str, tables: dict[str, FilledTable]) -> dict[RunId, dict[str, str]]:
    """Return the links of the tables that show each run, by their names."""
    found: dict[RunId, dict[str, str]] = {}
    for name, filled in tables.items():
        for row in filled.table.rows:
            for cell in filled.entry.cells.values():
                for run in cell.runs(filled.table.view, row) if is_ours(row) else ():
                    found.setdefault(run, {})[f"{report_title(name)} of {title}"] = f"{paper_page(paper)}#{name}"
    return found


def figure(pages: Pages, paper: str, name: str) -> dict[str, Any]:
    """Return a figure with its numbers; if its text may not be shown, its caption alone."""
    site, artifact = pages.site, Figure(paper, name)
    svg, entry = site.path(artifact), site.project.figure(paper, name)
    quotes = any(isinstance(source, AttentionMaps | Alignments) for source in flatten(site.graph.inputs(artifact)))
    shown = not quotes or site.is_shown(site.project.stand_in(entry.dataset))
    copy = f"figures/{file_name(paper, name)}"
    made = shown and svg.exists() and svg.with_suffix(".csv").exists()
    header, *rows = read_csv(svg.with_suffix(".csv")) if made else [[]]
    return {
        "name": name,
        "caption": caption(svg.with_suffix(".md"), site.project.config.scale) or entry.caption.strip(),
        "picture": pages.copy(svg, f"{copy}.svg") if made else "",
        "numbers": pages.copy(svg.with_suffix(".csv"), f"{copy}.csv") if made else "",
        "header": header,
        "rows": rows[:CHARTED],
        "all": len(rows),
        "hidden": not shown,
        "command": snakemake_command(site.project, svg),
    }


def caption(path: Path, scale: str) -> str:
    """Return the text of a figure's Markdown `path` without its title, which has the `scale`, and the picture."""
    if not path.exists():
        return ""
    text = path.read_text(encoding="utf-8").split("\n\n![")[0]
    title, ends, rest = plain(text).partition(f", at scale {scale}. ")
    return rest if ends else title


@dataclass(frozen=True)
class ShownClaim:
    """A claim in words.

    Attributes:
        name: Its name in claims.yaml.
        group: Its group, such as `primary`.
        statement: The sentence of the paper.
        about: Systems and data, which distinguish it from the other links of its chain.
        printed: The paper's evidence.
        why: Why it was not decided; empty if it was.
        ours: Our findings.
        test: The test behind its p-value.
        p_value: Adjusted p-value; None if it was not tested.
        chart: Its evidence, drawn.
    """

    name: str
    group: str
    statement: str
    about: str
    printed: str
    verdict: str
    why: str = ""
    ours: str = ""
    test: str = ""
    p_value: float | None = None
    chart: DotChart | None = None

    @property
    def mark(self) -> str:
        """Return the class of its badge."""
        return overview.mark_of(self.verdict)


def shown_claims(
    site: SiteData, labels: Labels, results: Sequence[ClaimResult], scores: dict
) -> list[tuple[str, list[ShownClaim]]]:
    """Return (verdict, claims) in the order of the verdicts; primary claims come first."""
    shown = [shown_claim(labels, result, scores, shown_verdict(site, labels, result, scores)) for result in results]
    names = [*map(str, Verdict), NOT_TESTED]
    groups = [(name, [claim for claim in shown if claim.verdict == name]) for name in names]
    return [(name, sorted(found, key=lambda claim: claim.group != "primary")) for name, found in groups if found]


def shown_verdict(site: SiteData, labels: Labels, result: ClaimResult, scores: dict) -> str:
    """Return the verdict of a claim; one without a missing artifact, or of another scale, is not called "not run"."""
    claim = result.claim
    if result.verdict != Verdict.NOT_RUN:
        return str(result.verdict)
    there = all(site.is_there(artifact) for artifact in claim.needs(labels.view, scores))
    return NOT_TESTED if there or not claim.is_tested(site.project.config.scale) else str(result.verdict)


def shown_claim(labels: Labels, result: ClaimResult, scores: dict, verdict: str) -> ShownClaim:
    """Put a claim into words; the page names its verdict as `verdict`, and `scores` are those of its paper."""
    worded = labels.result(result)
    stated = (
        result.name,
        result.group,
        result.claim.full_statement,
        about(labels, result, scores),
        result.claim.printed,
    )
    if worded.found is None:
        return ShownClaim(*stated, verdict, why=worded.why)
    found = worded.found
    known = [part for part in found.evidence if part.error is not None and math.isfinite(part.value)]
    chart = evidence(known) if known else None
    tested = labels.in_words(found.test_description, [system for system in labels.rows if "/" in system])
    return ShownClaim(*stated, verdict, worded.why, with_minus(found.ours), tested, result.p_value, chart)


def about(labels: Labels, result: ClaimResult, scores: dict) -> str:
    """Return the systems and data of a claim as `systems: data`; either may be missing."""
    systems = [labels.term(term) for term in result.claim.compared]
    systems = systems or [labels.system(system) for system, _ in result.claim.trainings]
    named = [scores[name] for name in result.claim.score_names]
    tests = "; ".join(dict.fromkeys(labels.test_sets(score) for score in named))
    metrics = " and ".join(dict.fromkeys(metric_title(score.metric) for score in named))
    pairs = dict.fromkeys(pair_of(labels.project, data) for _, data in result.claim.trainings)
    data = f"{metrics} on {tests}" if named else ", ".join(pairs)
    return ": ".join(filter(None, [" and ".join(dict.fromkeys(systems)), data]))


def evidence(known: Sequence[Evidence]) -> DotChart:
    """Draw quantities that are positive if a claim is true."""
    names = [part.name for part in known]
    numbers: list[Number | None] = [Number(part.value, part.low, part.high) for part in known]
    return differences("Evidence with 95 % intervals", names, {"right of zero: as claimed": numbers})

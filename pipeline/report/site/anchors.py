"""Results that others published by recipes that run here unchanged, beside ours."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.analysis.cells.cell import is_ours
from pipeline.analysis.cells.scores import ScoreCell
from pipeline.core.errors import UserError
from pipeline.papers.project import load_project
from pipeline.report.filled_table import fill
from pipeline.report.site.names import metric_title
from pipeline.report.site.present import Present
from pipeline.report.site.tables import Shown, shown_cell
from pipeline.workflow.targets import snakemake_command


@dataclass(frozen=True)
class Anchor:
    """A published number.

    Attributes:
        linked: Whether the runs behind ours have pages on this site.
    """

    label: str
    metric: str
    citation: str
    cell: Shown
    linked: bool


@dataclass(frozen=True)
class Anchors:
    """Published numbers of a folder of recipes, at the scale that has them."""

    paper: str
    title: str
    scale: str
    found: list[Anchor]
    command: str


def all_anchors(present: Present) -> list[Anchors]:
    """Return the published numbers of every folder of recipes."""
    records = present.project.papers.items()
    return [of_paper(present, paper) for paper, record in records if record.as_published]


def of_paper(present: Present, paper: str) -> Anchors:
    """Return published numbers at this scale, or at the first that has tables of them."""
    project, record = present.project, present.project.papers[paper]
    if not (here := bool(project.tables_here(paper))):
        scale = min(scale for table in record.tables.values() for scale in table.scales or ())
        project = load_project(project.root, project.config.model_dump() | {"scale": scale})
    there = Present(project, present.private)
    found = list(published(there, paper, here))
    return Anchors(paper, record.title, project.config.scale, found, snakemake_command(project, paper))


def published(present: Present, paper: str, linked: bool) -> Iterator[Anchor]:
    """Yield each published number of the tables, with ours."""
    for name in present.project.tables_here(paper):
        try:
            filled = fill(present.project, paper, name, present.folders(paper))
        except UserError:  # its own page says why
            continue
        for key, cell in filled.entry.cells.items():
            if not isinstance(cell, ScoreCell) or not cell.printed:
                continue
            for index, values in enumerate(filled.values(key)):
                row = filled.table.rows[index]
                if is_ours(row) and values["printed"]:
                    shown = shown_cell(present, filled, key, index, values)
                    yield Anchor(filled.names[index], metric_title(cell.metric), row.get("citation", ""), shown, linked)

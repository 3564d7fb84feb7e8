"""The site of all results: pages that open from disk."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.analysis.cells.cell import is_ours
from pipeline.analysis.cells.scores import ScoreCell
from pipeline.core.artifacts import RunId
from pipeline.core.disk import require_writable
from pipeline.core.errors import UserError
from pipeline.data.dataset import is_own, is_redistributable
from pipeline.data.dataset.base import DatasetRecord
from pipeline.papers.project import ProjectOptions, load_project
from pipeline.report.filled_table import fill
from pipeline.report.labels import metric_title
from pipeline.report.site import outputs, papers, runs
from pipeline.report.site.output_set import output_sets
from pipeline.report.site.pages import Pages
from pipeline.report.site.site_data import SiteData
from pipeline.report.site.tables import ShownCell, shown_cell
from pipeline.workflow.targets import scale_with_tables, snakemake_command

log = logging.getLogger(__name__)


def write_site(*, private: bool = False, out: Path = Path("results/site"), project: ProjectOptions) -> None:
    """Write the site of all results, to be opened from disk.

        reprise site --set scale=demo --out results/site

    reads   tables, figures, claims, and the folders of runs and corpora
    writes  <out>/index.html, a page for each paper, run, test set and comparison, and their files

    The page of a paper says what is missing, and names the command for it. The same results give the same bytes.
    Other files in the folder are removed, except hidden ones.

    Args:
        private: Show text of other people that may not be redistributed. Your own text is always shown.
        out: Folder to write.
        project: The project and its settings.
    """
    require_writable(out, "--out")
    pages = Pages(out, SiteData(project.load(), private))
    build(pages)
    log.info("%s: %d files", out / "index.html", len(pages.written))
    own = [record.name for record in pages.site.datasets if is_own(record) and not is_redistributable(record)]
    if own:
        log.warning("%s: shows text of %s; check its licence before you publish the site", out, ", ".join(own))


def build(pages: Pages) -> None:
    """Write every page, the home page last."""
    site = pages.site
    pages.assets()
    cards, tables = [], dict[RunId, dict[str, str]]()
    for paper in site.project.papers:
        card, standing = papers.write_paper(pages, paper)
        cards += [card] if not card.record.as_published else []
        for run_id, found in standing.items():
            tables.setdefault(run_id, {}).update(found)
    for run_id in site.begun:
        runs.write_run(pages, run_id, tables.get(run_id, {}))
    sets = output_sets(site)
    for output_set in sets:
        outputs.write_outputs(pages, output_set)
    cards.sort(key=lambda card: card.last_made, reverse=True)
    pages.page(
        "index.html",
        "home.html",
        title="Reprise",
        cards=[card for card in cards if card.measured],
        waiting=[card for card in cards if not card.measured],
        anchors=all_anchors(site),
        sets=sets,
        description=site.project.scale.description,
        runs=site.begun,
        datasets=by_terms(site.datasets),
    )
    pages.remove_others()


def by_terms(datasets: Iterable[DatasetRecord]) -> list[list[DatasetRecord]]:
    """Group datasets that have the same citation and licence."""
    found: dict[tuple[str, str], list[DatasetRecord]] = {}
    for dataset in datasets:
        found.setdefault((dataset.citation, dataset.licence), []).append(dataset)
    return list(found.values())


@dataclass(frozen=True)
class Anchor:
    """A published number.

    Attributes:
        label: Name of the row.
        citation: Publication of the number.
        cell: The number beside ours.
        linked: Whether the runs behind ours have pages on this site.
    """

    label: str
    metric: str
    citation: str
    cell: ShownCell
    linked: bool


@dataclass(frozen=True)
class Anchors:
    """Published numbers of a folder of recipes, at the scale that has them.

    Attributes:
        paper: Name of the folder.
        found: The numbers.
        command: Command that makes ours.
    """

    paper: str
    title: str
    scale: str
    found: list[Anchor]
    command: str


def all_anchors(site: SiteData) -> list[Anchors]:
    """Return the published numbers of every folder of recipes."""
    records = site.project.papers.items()
    return [anchors_of(site, paper) for paper, record in records if record.as_published]


def anchors_of(site: SiteData, paper: str) -> Anchors:
    """Return published numbers at this scale, or at the first that has tables of them."""
    project, record = site.project, site.project.papers[paper]
    scale = scale_with_tables(project, paper)
    if not (here := scale == project.config.scale):
        project = load_project(project.root, project.config.model_dump() | {"scale": scale})
    there = SiteData(project, site.private)
    found = list(published(there, paper, here))
    return Anchors(paper, record.title, scale, found, snakemake_command(site.project, paper, scale=scale))


def published(site: SiteData, paper: str, linked: bool) -> Iterator[Anchor]:
    """Yield each published number of the tables, with ours."""
    for name in site.project.tables_here(paper):
        try:
            filled = fill(site.project, paper, name, site.folders(paper))
        except UserError:  # its own page says why
            continue
        for key, cell in filled.entry.cells.items():
            if not isinstance(cell, ScoreCell) or not cell.printed:
                continue
            for index, values in enumerate(filled.cells[key]):
                row = filled.table.rows[index]
                if is_ours(row) and values["printed"]:
                    shown = shown_cell(site, filled, key, index)
                    yield Anchor(filled.names[index], metric_title(cell.metric), row.get("citation", ""), shown, linked)

"""The site of all results: pages that open from disk."""

import logging
from pathlib import Path

from pipeline.core.artifacts import RunId
from pipeline.core.disk import require_writable
from pipeline.papers.project import ProjectOptions
from pipeline.report.site.anchors import all_anchors
from pipeline.report.site.output_set import output_sets
from pipeline.report.site.outputs import write_outputs
from pipeline.report.site.pages import Pages
from pipeline.report.site.papers import write_paper
from pipeline.report.site.present import Present
from pipeline.report.site.runs import write_run

log = logging.getLogger(__name__)


def write_site(*, private: bool = False, out: Path = Path("results/site"), project: ProjectOptions) -> None:
    """Write the site of all results, to be opened from disk.

        reprise site --set scale=demo --out results/site

    reads   tables, figures, claims, and the folders of runs and corpora
    writes  <out>/index.html, a page for each paper, run, test set and comparison, and their files

    The page of a paper says what is missing, and which command makes it. The same results give the same bytes.

    Args:
        private: Show text that nobody may pass on.
        out: Folder to write.
        project: The project and its settings.
    """
    require_writable(out, "--out")
    pages = Pages(out, Present(project.load(), private))
    build(pages)
    log.info("%s: %d files", out / "index.html", len(pages.written))


def build(pages: Pages) -> None:
    """Write every page, the home page last."""
    present = pages.present
    pages.assets()
    cards, tables = [], dict[RunId, dict[str, str]]()
    for paper in present.project.papers:
        card, standing = write_paper(pages, paper)
        cards += [card] if not card.record.as_published else []
        for run_id, found in standing.items():
            tables.setdefault(run_id, {}).update(found)
    for run_id in present.begun:
        write_run(pages, run_id, tables.get(run_id, {}))
    sets = output_sets(present)
    for one in sets:
        write_outputs(pages, one)
    cards.sort(key=lambda card: card.last_made, reverse=True)
    datasets = sorted({run_id.dataset for run_id in present.begun})
    pages.page(
        "index.html",
        "home.html",
        title="Reprise",
        cards=[card for card in cards if card.measured],
        waiting=[card for card in cards if not card.measured],
        anchors=all_anchors(present),
        sets=sets,
        description=present.project.scale.description,
        runs=present.begun,
        datasets=[present.project.dataset_records[name] for name in datasets],
    )
    pages.remove_others()

"""The site of all results: pages that are opened from disk, with whatever is there; the rest says `not run`.

    reprise site --set scale=demo --out results/site

reads   tables, figures, claims, and the folders of runs and corpora
writes  <out>/index.html, a page for each paper, run, test set and comparison, and what they show

The same results make the same bytes. Text that nobody may pass on is left out without --private.
"""

import argparse
import logging
from pathlib import Path

from pipeline.core.artifacts import RunId
from pipeline.core.disk import require_writable
from pipeline.papers.arguments import add_project_arguments, project_of
from pipeline.report.site.anchors import all_anchors
from pipeline.report.site.outputs import output_sets, write_outputs
from pipeline.report.site.pages import Pages
from pipeline.report.site.papers import write_paper
from pipeline.report.site.present import Present
from pipeline.report.site.runs import write_run

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project_arguments(parser)
    parser.add_argument("--private", action="store_true", help="show text that nobody may pass on, too")
    parser.add_argument("--out", type=Path, default=Path("results/site"), help="folder to write (default: %(default)s)")


def run(args: argparse.Namespace) -> None:
    require_writable(args.out, "--out")
    pages = Pages(args.out, Present(project_of(args), args.private))
    build(pages)
    log.info("%s: %d files", args.out / "index.html", len(pages.written))


def build(pages: Pages) -> None:
    """Every page; the home page last."""
    present = pages.present
    pages.assets()
    cards, tables = [], dict[RunId, dict[str, str]]()
    for paper in present.project.papers:
        card, standing = write_paper(pages, paper)
        cards += [card] if not card.record.as_published else []
        for run_id, found in standing.items():
            tables.setdefault(run_id, {}).update(found)
    for run_id in present.runs:
        write_run(pages, run_id, tables.get(run_id, {}))
    sets = output_sets(present)
    for one in sets:
        write_outputs(pages, one)
    project = present.project
    pages.page(
        "index.html",
        "home.html",
        title="Reprise",
        cards=cards,
        anchors=all_anchors(present),
        sets=sets,
        description=project.scale.description,
        runs=present.runs,
        datasets=[project.dataset_records[name] for name in sorted({run_id.dataset for run_id in present.runs})],
    )
    pages.remove_others()

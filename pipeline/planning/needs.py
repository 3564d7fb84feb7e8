"""What a paper's tables, claims and figures stand on: runs, files in their folders, and datasets."""

from collections import defaultdict
from collections.abc import Iterable

from pipeline.experiment.project import Project
from pipeline.products import RunId


def run_files(project: Project, papers: Iterable[str]) -> dict[RunId, set[str]]:
    """Files needed of each run's folder, such as `trained.json` and `scores/final/dev.json`."""
    needed: dict[RunId, set[str]] = defaultdict(set)
    for paper in papers:
        for table in project.tables_here(paper):
            for cell in project.cell_runs(paper, table):
                column = project.table(paper, table).cells[cell.cell]
                scores = project.files_of(column, cell.decodings) if cell.decodings else ()
                needed[cell.run] |= {"trained.json", *scores}
        figures = (file for figure in project.papers[paper].figures for file in project.figure_files(paper, figure))
        examples = (file for table in project.papers[paper].examples for file in project.example_files(paper, table))
        for file in (*project.claim_files(paper), *figures, *examples):
            needed[file.run] |= {"trained.json", file.path}
    return dict(needed)


def datasets_of(runs: Iterable[RunId]) -> list[str]:
    return sorted({run.dataset for run in runs})

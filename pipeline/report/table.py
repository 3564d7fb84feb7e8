"""Tables of a paper: each printed number beside ours, with spread, cost and provenance."""

import logging
from pathlib import Path

from pipeline.papers.project import ProjectOptions
from pipeline.report.filled_table import NOT_RUN, fill
from pipeline.report.markdown import render
from pipeline.report.markup import write_twins

log = logging.getLogger(__name__)


def write_table(*, paper: str, table: str, out: Path, project: ProjectOptions) -> None:
    """Compare the scores of a table with the numbers that the paper prints.

        python -m pipeline table --paper weighted --table table2 --out results/demo/weighted/table2.csv

    Write the CSV and, beside it, a Markdown twin for reading in a terminal.

    Args:
        paper: Name of a paper in workflow/papers.
        table: Name of a table of the paper.
        out: CSV to write, with a Markdown twin beside it.
        project: The project and its settings.
    """
    loaded = project.load([paper])
    filled = fill(loaded, paper, table)
    write_twins(out, filled.frame, render(loaded, paper, table, filled))
    statuses = filled.runs["status"]
    log.info("%s: %d rows, %d not run", out, len(statuses), (statuses == NOT_RUN).sum())

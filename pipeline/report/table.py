"""One table of one paper: each printed number next to ours, with spread, cost and provenance.

    python -m pipeline table --paper weighted --table table2 --out results/demo/weighted/table2.csv

writes the CSV and, beside it, a Markdown twin to be read in a terminal.
"""

import argparse
import logging
from functools import partial

from pipeline.papers.arguments import add_report_arguments, project_of
from pipeline.report.filled_table import NOT_RUN, fill
from pipeline.report.markdown import render
from pipeline.report.markup import write_twins

log = logging.getLogger(__name__)
add_arguments = partial(add_report_arguments, names=["table"], out="CSV to write; the Markdown twin lies beside it")


def run(args: argparse.Namespace) -> None:
    project = project_of(args, [args.paper])
    filled = fill(project, args.paper, args.table)
    write_twins(args.out, filled.frame, render(project, args.paper, args.table, filled))
    statuses = filled.runs["status"]
    log.info("%s: %d rows, %d not run", args.out, len(statuses), (statuses == NOT_RUN).sum())

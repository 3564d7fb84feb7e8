"""One table of one paper: each printed number next to ours, with spread, cost and provenance.

    python -m pipeline table --paper weighted --table table2 --out results/demo/weighted/table2.csv

writes the CSV and, beside it, a Markdown twin to be read in a terminal. Settings come from config.yaml;
`--set scale=small` replaces one of them.
"""

import argparse
import logging
from pathlib import Path

from pandas import DataFrame

from pipeline.experiment.project import Project, load_project
from pipeline.experiment.settings import parse_settings
from pipeline.files import atomic_write, write_csv
from pipeline.reporting.filled_table import NOT_RUN, fill
from pipeline.reporting.markdown import render

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", type=Path, default=Path(), help="project root (default: the working directory)")
    parser.add_argument("--paper", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="replace a key of config.yaml")
    parser.add_argument("--out", type=Path, required=True, help="CSV to write; the Markdown twin lies beside it")


def run(args: argparse.Namespace) -> None:
    project = load_project(args.root, parse_settings(args.set))
    filled = fill(project, args.paper, args.table)
    write_csv(args.out, filled.frame)
    with atomic_write(args.out.with_suffix(".md")) as handle:
        handle.write(render(project, args.paper, args.table, filled))
    statuses = filled.runs["status"]
    log.info("%s: %d rows, %d not run", args.out, len(statuses), (statuses == NOT_RUN).sum())


def table_frame(project: Project, paper: str, table: str) -> DataFrame:
    """The table as it stands in the CSV."""
    return fill(project, paper, table).frame

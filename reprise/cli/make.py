"""Have Snakemake make something, and look on: on a terminal one screen for all of it, in a log a line an event.

    reprise make results/table2.csv
    reprise make --set scale=small weighted

TARGET is a paper, `all`, or a file in results/; for anything else there is `snakemake` itself. An interrupt is handed
on, and trainings save what they did: the same command goes on from there.

reads   what `reprise status` reads
writes  work/<scale>/logs/make.log: all that Snakemake says
"""

import argparse
import json
import sys
import time

from pipeline.core.artifacts import Report, Table
from pipeline.papers.arguments import add_settings_argument
from pipeline.papers.settings import parse_settings
from pipeline.workflow.campaign import Watch
from pipeline.workflow.graph import Graph
from pipeline.workflow.targets import command
from reprise.named_results import in_file, reports_named
from reprise.named_run import find_project
from reprise.status.look_on import Workflow, look_on, relay


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="+", metavar="TARGET", help="a paper, `all`, or a file in results/")
    add_settings_argument(parser)


def run(args: argparse.Namespace) -> None:
    settings = parse_settings(args.set)
    project = find_project(settings)
    graph = Graph(project)
    watch = Watch(project, [one for target in args.targets for one in reports(graph, target)])
    config = ["--config", *(f"{key}={json.dumps(value)}" for key, value in settings.items())] if settings else []
    begun, title = time.monotonic(), " ".join(args.targets)
    with Workflow([*config, "--", *args.targets], project) as workflow:
        look_on(workflow, watch, title) if sys.stdout.isatty() else relay(workflow)
    made = ", ".join(f"{there} {name}" for name, (there, _) in watch.look().made.items() if there)
    print(f"{title}: made of {made}; {(time.monotonic() - begun) / 60:.1f} minutes", flush=True)


def reports(graph: Graph, target: str) -> list[Report]:
    """What a target of the workflow is, with tables that are made on request. Raises UserError when it is no report."""
    project = graph.project
    tables = [Table(paper, name) for paper in project.papers for name in project.tables_here(paper)]
    every: dict[Report, None] = dict.fromkeys([*graph.reports(project.papers), *tables])
    otherwise = f"neither a paper, nor `all`, nor a result; where a rule makes it, `{command(project, target)}` does"
    return reports_named(graph, target) or in_file(project, target, every, otherwise)

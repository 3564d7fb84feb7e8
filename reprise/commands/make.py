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
from pathlib import PurePath

from pipeline.errors import UserError
from pipeline.experiment.arguments import add_settings_argument
from pipeline.experiment.graph import Graph
from pipeline.experiment.project import Project
from pipeline.experiment.settings import parse_settings
from pipeline.experiment.targets import unknown_target
from pipeline.products import Report, Table
from reprise.named_run import find_project
from reprise.status.campaign import Watch
from reprise.status.look_on import Workflow, look_on, relay

QUEUE_INTERVAL_S = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="+", metavar="TARGET", help="a paper, `all`, or a file in results/")
    add_settings_argument(parser)


def run(args: argparse.Namespace) -> None:
    settings = parse_settings(args.set)
    project = find_project(settings)
    graph = Graph(project)
    watch = Watch(project, [one for target in args.targets for one in reports(graph, target)], QUEUE_INTERVAL_S)
    config = ["--config", *(f"{key}={json.dumps(value)}" for key, value in settings.items())] if settings else []
    begun, title = time.monotonic(), " ".join(args.targets)
    with Workflow([*config, "--", *args.targets], project) as workflow:
        look_on(workflow, watch, title) if sys.stdout.isatty() else relay(workflow)
    made = ", ".join(f"{there} {name}" for name, (there, _) in watch.look().made.items() if there)
    print(f"{title}: made of {made}; {(time.monotonic() - begun) / 60:.1f} minutes", flush=True)


def reports(graph: Graph, target: str) -> list[Report]:
    """What a target of the workflow is. Raises UserError when it is no result."""
    project: Project = graph.project
    if fault := unknown_target(project, target, {*project.papers, "all"}):
        raise UserError(fault)
    if target == "all" or target in project.papers:
        return graph.reports(project.reproduced if target == "all" else [target])
    path = PurePath(target)
    if path.parent == PurePath("results"):  # a view of the configured paper's
        path = project.layout.results / project.config.paper / path.name
    tables = [Table(paper, name) for paper in project.papers for name in project.tables_here(paper)]
    every: dict[Report, None] = dict.fromkeys([*graph.reports(project.papers), *tables])
    if found := [one for one in every if project.layout.path(one).with_suffix("") == path.with_suffix("")]:
        return found
    raise UserError(f"{target}: no result that can be looked on at; `snakemake {target}` makes it")

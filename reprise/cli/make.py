"""Running Snakemake with one screen for all of it, or one line per event."""

import json
import sys
import time
from typing import Annotated

from pipeline.core.artifacts import Report, Table
from pipeline.core.command_line import Argument
from pipeline.papers.arguments import Settings
from pipeline.papers.settings import parse_settings
from pipeline.workflow.campaign import Watch
from pipeline.workflow.graph import Graph
from pipeline.workflow.targets import command
from reprise.named import find_project, in_file, reports_named
from reprise.status.look_on import Workflow, look_on, relay


def make(targets: Annotated[tuple[str, ...], Argument(metavar="TARGET")], *, settings: Settings = ()) -> None:
    """Run Snakemake for some targets, and show its progress.

        reprise make results/table2.csv
        reprise make --set scale=small weighted

    Shows one screen on a terminal, and one line per event in a log. For other targets there is `snakemake` itself. An
    interrupt is passed on, and trainings save their state: the same command resumes them.

    reads   what `reprise status` reads
    writes  work/<scale>/logs/make.log: the output of Snakemake

    Args:
        targets: Papers, `all`, or files in results/.
        settings: Override a key of config.yaml. May be given several times.
    """
    changed = parse_settings(settings)
    project = find_project(changed)
    graph = Graph(project)
    watch = Watch(project, [one for target in targets for one in reports(graph, target)])
    config = ["--config", *(f"{key}={json.dumps(value)}" for key, value in changed.items())] if changed else []
    begun, title = time.monotonic(), " ".join(targets)
    with Workflow([*config, "--", *targets], project) as workflow:
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

"""The command `make`: run Snakemake with one screen, or one line per event."""

import json
import sys
import time
from typing import Annotated

from pipeline.core.command_line import Argument
from pipeline.papers.project import Settings
from pipeline.papers.settings import parse_settings
from pipeline.workflow.campaign import Watch
from pipeline.workflow.graph import Graph
from pipeline.workflow.targets import reports_asked_for
from reprise.named import find_project
from reprise.status.look_on import Workflow, look_on, relay


def make(
    targets: Annotated[tuple[str, ...], Argument(metavar="TARGET")],
    *,
    cores: Annotated[str | None, Argument(metavar="N")] = None,
    settings: Settings = (),
) -> None:
    """Run Snakemake for some targets, and show its progress.

        reprise make results/table2.csv
        reprise make --set scale=small --cores 4 weighted

    Shows one screen on a terminal, and one line per event in a log. For other targets there is `snakemake` itself. An
    interrupt is passed on, and trainings save their state: the same command resumes them.

    reads   what `reprise status` reads
    writes  work/<scale>/logs/make.log: the output of Snakemake

    Args:
        targets: Papers, `all`, or files in results/.
        cores: CPU cores that Snakemake uses at once, or `all`; by default what the profile says.
        settings: Override a key of config.yaml. May be given several times.
    """
    changed = parse_settings(settings)
    project = find_project(changed)
    graph = Graph(project)
    watch = Watch(project, [one for target in targets for one in reports_asked_for(graph, target)])
    config = ["--config", *(f"{key}={json.dumps(value)}" for key, value in changed.items())] if changed else []
    options = [*config, *(["--cores", cores] if cores else [])]
    begun, title = time.monotonic(), " ".join(targets)
    with Workflow([*options, "--", *targets], project) as workflow:
        look_on(workflow, watch, title) if sys.stdout.isatty() else relay(workflow)
    made = ", ".join(f"{there} {name}" for name, (there, _) in watch.look().made.items() if there)
    print(f"{title}: made of {made}; {(time.monotonic() - begun) / 60:.1f} minutes", flush=True)

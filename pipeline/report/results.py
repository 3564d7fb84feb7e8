"""Write tables, figures and claims from the outputs made so far."""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pipeline.core.command_line import Argument, Pause
from pipeline.core.digests import recording_digests
from pipeline.papers.config_file import parse_settings, require_work
from pipeline.papers.project import Settings, load_project, require_project
from pipeline.report.partial import PartialReports, WrittenReport, mark_incomplete, score_decoded
from pipeline.workflow.campaign import Campaign, Causes, Watch
from pipeline.workflow.failures import first_line
from pipeline.workflow.graph import Graph
from pipeline.workflow.targets import reports_asked_for


def write_results(
    targets: Annotated[tuple[str, ...], Argument(metavar="TARGET")] = ("all",),
    *,
    watch: bool = False,
    every: Pause = 300.0,
    settings: Settings = (),
) -> None:
    """Write tables, figures and claims from the outputs made so far.

        reprise results
        reprise results weighted results/paper/attention/table2.csv --set scale=paper
        reprise results --watch

    A cell without a number says failed, running, waiting or not run.

    reads   the folders of runs and corpora, and Slurm's queue if something was submitted
    writes  results/<scale>/<paper>/…; complete results of the workflow are left alone, it rebuilds all others

    Args:
        targets: Papers, `all`, or files in results/.
        watch: Write them again and again, until Ctrl-C.
        every: Seconds between two rounds of --watch.
        settings: Override a key of config.yaml. May be given several times.
    """
    logging.disable(logging.INFO)  # of the stages
    require_project(Path(), "go to the root folder of one")
    project = load_project(Path(), parse_settings(settings))
    require_work(project.config, project.root)
    graph = Graph(project)
    reports = list(dict.fromkeys(report for target in targets for report in reports_asked_for(graph, target)))
    watcher = Watch(project, reports)
    while True:
        campaign = watcher.snapshot()
        score_decoded(graph, reports)
        with recording_digests():
            partial = PartialReports(graph, Causes(graph, campaign), settings)
            made = [partial.make(report) for report in reports]
        mark_incomplete(partial.incomplete)
        for line in summary(campaign, made):
            print(line, flush=True)
        if not watch:
            return
        time.sleep(every)


def summary(campaign: Campaign, made: list[WrittenReport]) -> Iterator[str]:
    """Yield lines about incomplete reports, failures, and progress."""
    for report in made:
        if report.lacks:
            yield f"{report.path}: {f'without {report.lacks}' if report.is_written else f'not made: {report.lacks}'}"
    for state in campaign.of_state("failed"):
        yield f"failed: train {state.run.folder}: {first_line(state.why)}"
    for failed in campaign.failed:
        yield f"failed: {failed.stage} in {failed.folder}: {first_line(failed.cause)}"
    states = ", ".join(f"{count} {state}" for state, count in campaign.counts.items() if count)
    reports = Counter(
        "not made" if not report.is_written else "incomplete" if report.lacks else "complete" for report in made
    )
    yield f"reports: {', '.join(f'{count} {how}' for how, count in reports.items())}; trainings: {states or 'none'}"

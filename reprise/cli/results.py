"""Make tables, figures and claims of what is there now: what has no number says failed, running, waiting or not run.

    reprise results
    reprise results weighted results/paper/attention/table2.csv --set scale=paper
    reprise results --watch

reads   what the folders of runs and corpora hold, and Slurm's queue if something was submitted
writes  results/<scale>/<paper>/…; what the workflow has made whole is left alone, all else it makes anew
"""

import argparse
import logging
import time
from collections import Counter
from collections.abc import Iterator

from pipeline.core.digests import recording
from pipeline.papers.arguments import add_settings_argument
from pipeline.papers.settings import parse_settings
from pipeline.report.partial import Made, Partial, mark_in_part, score_decoded
from pipeline.workflow.campaign import Campaign, Watch
from pipeline.workflow.causes import Causes
from pipeline.workflow.failures import first_line
from pipeline.workflow.graph import Graph
from reprise.cli.make import reports as reports_of
from reprise.cli.status import pause
from reprise.named_run import find_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "targets", nargs="*", default=["all"], metavar="TARGET", help="a paper, or a file in results/ (default: all)"
    )
    parser.add_argument("--watch", action="store_true", help="make them again and again, until Ctrl-C")
    parser.add_argument(
        "--every", type=pause, default=300.0, metavar="S", help="of --watch, seconds (default: %(default)g)"
    )
    add_settings_argument(parser)


def run(args: argparse.Namespace) -> None:
    logging.disable(logging.INFO)  # of the stages
    project = find_project(parse_settings(args.set))
    graph = Graph(project)
    reports = list(dict.fromkeys(one for target in args.targets for one in reports_of(graph, target)))
    watch = Watch(project, reports)
    while True:
        campaign = watch.look()
        score_decoded(graph, reports)
        with recording():
            partial = Partial(graph, Causes(graph, campaign), args.set)
            made = [partial.make(report) for report in reports]
        mark_in_part(partial.in_part)
        for line in summary(campaign, made):
            print(line, flush=True)
        if not args.watch:
            return
        time.sleep(args.every)


def summary(campaign: Campaign, made: list[Made]) -> Iterator[str]:
    """What is not whole, what failed, and how far all is."""
    for one in made:
        if one.lacks:
            yield f"{one.path}: {f'without {one.lacks}' if one.is_there else f'not made: {one.lacks}'}"
    for state in campaign.of_state("failed"):
        yield f"failed: train {state.run.folder}: {first_line(state.why)}"
    for failed in campaign.failed:
        yield f"failed: {failed.stage} in {failed.folder}: {first_line(failed.cause)}"
    states = ", ".join(f"{count} {state}" for state, count in campaign.counts.items() if count)
    whole = Counter("not made" if not one.is_there else "in part" if one.lacks else "whole" for one in made)
    yield f"reports: {', '.join(f'{count} {how}' for how, count in whole.items())}; trainings: {states or 'none'}"

"""Say how far a campaign is, here or on Slurm: what runs, waits or failed and why, what it cost, and what to do.

    reprise status
    reprise status --set scale=paper --watch
    reprise status --json | jq '.runs[] | select(.state == "failed")'

reads   the folders of runs and corpora, Slurm's queue if something was submitted, and nothing of a network
writes  nothing
"""

import argparse
import json
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from pipeline.core.artifacts import Product, Trained
from pipeline.core.schema import known
from pipeline.papers.arguments import add_settings_argument
from pipeline.papers.project import Project
from pipeline.papers.settings import parse_settings
from pipeline.workflow.campaign import Campaign, Watch, is_made
from pipeline.workflow.graph import Graph
from pipeline.workflow.targets import command
from reprise.named_run import find_project
from reprise.status.screen import coming, screen

if TYPE_CHECKING:
    from reprise.status.forecast import Forecast

WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("papers", nargs="*", metavar="PAPER", help="of which papers (default: all)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--watch", action="store_true", help="show it again and again, until Ctrl-C")
    shown.add_argument("--json", action="store_true", help="write it as one JSON record, for programs")
    parser.add_argument(
        "--every", type=pause, default=5.0, metavar="S", help="of --watch, seconds (default: %(default)g)"
    )
    parser.add_argument(
        "--no-forecast", action="store_true", help="leave out what is to come, which takes seconds to count"
    )
    add_settings_argument(parser)


def run(args: argparse.Namespace) -> None:
    project = find_project(parse_settings(args.set))
    for paper in args.papers:
        known(paper, project.papers, "PAPER")
    papers = args.papers or list(project.papers)
    graph = Graph(project)
    watch, asked = Watch(project, graph.readable(papers)), graph.readable(args.papers or project.reproduced)
    to_come = ToCome(project, papers, not args.no_forecast)
    title = f"Reprise: {', '.join(papers)} at scale {project.config.scale}"
    by_slurm = project.config.scale == "paper" or watch.has_submitted

    def goes_on(campaign: Campaign) -> str:
        named = named_too(project, asked, campaign)
        return command_for(args.set, [*(args.papers or ["all"]), *named], by_slurm)

    if args.json:
        campaign = watch.look()
        print(json.dumps(asdict(campaign) | {"to_come": to_come.of(campaign)}, default=str))
    elif args.watch:
        show(watch, to_come, title, goes_on, args.every)
    else:
        campaign = watch.look()
        show_once(screen(campaign, title, None, goes_on(campaign)))
        if (said := to_come.said(campaign)) is not None:  # counted while what is there is read
            show_once(Text(f"\n{said}"))


class ToCome:
    """The forecast, if it is wanted."""

    def __init__(self, project: Project, papers: list[str], wanted: bool):
        self.project, self.papers, self.wanted = project, papers, wanted

    @cached_property
    def forecast(self) -> "Forecast":
        from reprise.status.forecast import Forecast  # brings torch

        return Forecast(self.project, self.papers)

    def of(self, campaign: Campaign) -> dict[str, float] | None:
        return self.forecast.hours(campaign) if self.wanted else None

    def said(self, campaign: Campaign) -> str | None:
        hours = self.of(campaign)
        return None if hours is None else coming(hours, command(self.project, "plan"))


def show_once(what: RenderableType) -> None:
    """On a terminal, as wide as it is; in a log, plain lines of a fixed width."""
    if sys.stdout.isatty():
        Console().print(what)
        return
    plain = Console(width=WIDTH, color_system=None)
    with plain.capture() as said:
        plain.print(what)
    print("\n".join(line.rstrip() for line in said.get().splitlines()), flush=True)


def pause(text: str) -> float:
    """Seconds (an argparse type)."""
    seconds = float(text)
    if not 0 < seconds <= 1e6:
        raise argparse.ArgumentTypeError(f"must be above 0 and a million at most, got {text}")
    return seconds


def show(watch: Watch, to_come: ToCome, title: str, goes_on: Callable[[Campaign], str], every_s: float) -> None:
    """Until somebody ends it; in a log, one below the other."""
    live = Live(screen=True, auto_refresh=False) if sys.stdout.isatty() else nullcontext()
    with live:
        said: str | None = None
        while True:
            campaign = watch.look()
            now = screen(campaign, title, said, goes_on(campaign))
            live.update(now, refresh=True) if isinstance(live, Live) else show_once(now)
            said = to_come.said(campaign)
            time.sleep(every_s)


def named_too(project: Project, asked: Iterable[Product], campaign: Campaign) -> list[str]:
    """Trainings that snakemake makes only if they are named: of reports that are there already, one was lost since."""
    if not all(is_made(project.layout.path(one)) for one in asked):
        return []
    return [str(project.layout.path(Trained(one.run))) for one in campaign.of_state("not run")]


def command_for(settings: list[str], targets: list[str], by_slurm: bool) -> str:
    """What goes on with such a campaign; on Slurm, if it is here, where its work belongs or lies already."""
    profile = " --profile slurm" if by_slurm and shutil.which("sbatch") else ""
    config = f" --config {' '.join(map(shlex.quote, settings))}" if settings else ""
    return f"snakemake{profile}{config} -- {' '.join(map(shlex.quote, targets))}"

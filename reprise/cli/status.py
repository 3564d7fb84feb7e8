"""The command `status`: state, failures and cost of a campaign, here or on Slurm, and what to do."""

import json
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from pipeline.core.artifacts import Product, Trained
from pipeline.core.command_line import Argument, Pause
from pipeline.core.schema import known
from pipeline.papers.project import Project, Settings
from pipeline.papers.settings import parse_settings
from pipeline.workflow.campaign import Campaign, Watch, is_made
from pipeline.workflow.graph import Graph
from pipeline.workflow.targets import snakemake_command
from reprise.named import find_project
from reprise.status.screen import coming, screen

if TYPE_CHECKING:
    from reprise.status.forecast import Forecast

WIDTH = 100


def status(
    papers: Annotated[tuple[str, ...], Argument(metavar="PAPER")] = (),
    *,
    watch: Annotated[bool, Argument(exclusive="shown")] = False,
    as_json: Annotated[bool, Argument(name="--json", exclusive="shown")] = False,
    every: Pause = 5.0,
    no_forecast: bool = False,
    settings: Settings = (),
) -> None:
    """Show the progress of a campaign, what failed and what to do.

        reprise status
        reprise status --set scale=paper --watch
        reprise status --json | jq '.runs[] | select(.state == "failed")'

    reads   the folders of runs and corpora, and Slurm's queue if something was submitted; no network
    writes  nothing

    Args:
        papers: Papers to show; by default all.
        watch: Refresh the screen until Ctrl-C.
        as_json: Print one JSON record, for programs.
        every: Seconds between two rounds of --watch.
        no_forecast: Leave out the forecast, which takes seconds to compute.
        settings: Override a key of config.yaml. May be given several times.
    """
    project = find_project(parse_settings(settings))
    for paper in papers:
        known(paper, project.papers, "PAPER")
    named = [*papers] or list(project.papers)
    graph = Graph(project)
    watcher, asked = Watch(project, graph.readable(named)), graph.readable([*papers] or project.reproduced)
    to_come = ToCome(project, named, not no_forecast)
    title = f"Reprise: {', '.join(named)} at scale {project.config.scale}"
    by_slurm = project.config.scale == "paper" or watcher.has_submitted

    def goes_on(campaign: Campaign) -> str:
        lost = named_too(project, asked, campaign)
        return command_for(settings, [*(papers or ["all"]), *lost], by_slurm)

    if as_json:
        campaign = watcher.look()
        print(json.dumps(asdict(campaign) | {"to_come": to_come.of(campaign)}, default=str))
    elif watch:
        show(watcher, to_come, title, goes_on, every)
    else:
        campaign = watcher.look()
        show_once(screen(campaign, title, None, goes_on(campaign)))
        if (said := to_come.said(campaign)) is not None:  # computed after the screen is shown
            show_once(Text(f"\n{said}"))


class ToCome:
    """The forecast of remaining hours, unless the user left it out."""

    def __init__(self, project: Project, papers: list[str], wanted: bool):
        self.project, self.papers, self.wanted = project, papers, wanted

    @cached_property
    def forecast(self) -> "Forecast":
        """Build the forecast at its first use."""
        from reprise.status.forecast import Forecast  # brings torch

        return Forecast(self.project, self.papers)

    def of(self, campaign: Campaign) -> dict[str, float] | None:
        """Return the remaining hours by device, or None without a forecast."""
        return self.forecast.hours(campaign) if self.wanted else None

    def said(self, campaign: Campaign) -> str | None:
        """Return the remaining hours in words, or None without a forecast."""
        hours = self.of(campaign)
        return None if hours is None else coming(hours, snakemake_command(self.project, "plan"))


def show_once(what: RenderableType) -> None:
    """Print in the width of the terminal, or as plain lines of fixed width in a log."""
    if sys.stdout.isatty():
        Console().print(what)
        return
    plain = Console(width=WIDTH, color_system=None)
    with plain.capture() as said:
        plain.print(what)
    print("\n".join(line.rstrip() for line in said.get().splitlines()), flush=True)


def show(watch: Watch, to_come: ToCome, title: str, goes_on: Callable[[Campaign], str], every_s: float) -> None:
    """Print the screen again and again until Ctrl-C; in a log, one below the other."""
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
    """List lost trainings that Snakemake rebuilds only if they are named.

    Snakemake does not look at the inputs of reports that exist.
    """
    if not all(is_made(project.layout.path(one)) for one in asked):
        return []
    return [str(project.layout.path(Trained(one.run))) for one in campaign.of_state("not run")]


def command_for(settings: Sequence[str], targets: list[str], by_slurm: bool) -> str:
    """Return the command that resumes the campaign, on Slurm if it is available and was used."""
    profile = " --profile slurm" if by_slurm and shutil.which("sbatch") else ""
    config = f" --config {' '.join(map(shlex.quote, settings))}" if settings else ""
    return f"snakemake{profile}{config} -- {' '.join(map(shlex.quote, targets))}"

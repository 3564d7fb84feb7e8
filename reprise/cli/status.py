"""The command `status`: state, failures and cost of a campaign, here or on Slurm, and what to do."""

import json
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from pipeline.core.artifacts import Artifact, Calibration, RunId, Trained
from pipeline.core.command_line import Argument, Pause
from pipeline.core.json_csv import finite
from pipeline.core.schema import require_known
from pipeline.papers.config_file import parse_settings
from pipeline.papers.project import Project, Settings
from pipeline.workflow.campaign import Campaign, Watch, is_made
from pipeline.workflow.graph import Graph
from pipeline.workflow.runs import RunState
from pipeline.workflow.targets import snakemake_command
from reprise.find_runs import find_project
from reprise.screen import remaining, screen

if TYPE_CHECKING:
    from pipeline.planning.devices import Devices
    from pipeline.planning.jobs import Job

WIDTH = 100
RENEWED_S = 300.0
"""Age above which a forecast is computed again."""
HERE = "this machine"


def status(
    papers: Annotated[tuple[str, ...], Argument(metavar="PAPER")] = (),
    *,
    watch: Annotated[bool, Argument(exclusive="shown")] = False,
    as_json: Annotated[bool, Argument(name="--json", exclusive="shown")] = False,
    every: Pause = 5.0,
    no_forecast: bool = False,
    settings: Settings = (),
) -> None:
    """Show the progress of all runs, what failed and what to do.

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
        require_known(paper, project.papers, "PAPER")
    named = [*papers] or list(project.papers)
    graph = Graph(project)
    watcher, requested = Watch(project, graph.readable(named)), graph.readable([*papers] or project.reproduced)
    forecast = None if no_forecast else Forecast(project, named)
    title = f"Reprise: {', '.join(named)} at scale {project.config.scale}"
    by_slurm = project.config.scale == "paper" or watcher.has_submitted
    if as_json:
        campaign = watcher.snapshot()
        hours = forecast.hours(campaign) if forecast else None
        print(json.dumps(finite(asdict(campaign) | {"to_come": hours}), default=str))
        return
    words: str | None = None
    live = Live(screen=True, auto_refresh=False) if watch and sys.stdout.isatty() else None
    with live or nullcontext():
        while True:
            campaign = watcher.snapshot()
            targets = [*(papers or ["all"]), *runs_to_request(project, requested, campaign)]
            now = screen(campaign, title, words, command_for(settings, targets, by_slurm))
            live.update(now, refresh=True) if live else print_plain(now)
            words = forecast.in_words(campaign) if forecast else None  # after the screen, as it takes seconds
            if not watch:
                break
            time.sleep(every)
    if words is not None:
        print_plain(Text(f"\n{words}"))


class Forecast:
    """A forecast of the remaining device hours, by the plan and the current progress.

    The plan takes seconds to compute, and is renewed every few minutes.

    Attributes:
        project: The project at its scale.
        papers: Papers that are planned.
        planned: Their jobs that need a device.
        calibration: Path of this machine's measured speed.
    """

    def __init__(self, project: Project, papers: Iterable[str]):
        self.project, self.papers = project, list(papers)
        self.made, self.planned = 0.0, list["Job"]()
        self.calibration = project.layout.path(Calibration())

    @cached_property
    def devices(self) -> "Devices":
        """Load the devices of the workflow."""
        from pipeline.planning.devices import load_devices

        return load_devices(self.project.root / "workflow/devices.yaml")

    def in_words(self, campaign: Campaign) -> str:
        """Return the remaining hours in words."""
        return remaining(self.hours(campaign), snakemake_command(self.project, "plan"))

    def hours(self, campaign: Campaign) -> dict[str, float]:
        """Return the remaining hours by device: devices in use, else all that have bfloat16.

        It is empty if trainings run on a CPU that was not calibrated.
        """
        on_cpu = not self.project.scale.resources["train"].gpus
        if on_cpu and not self.calibration.exists():
            done = [campaign.made[kind] for kind in ("trainings", "decodings")]
            return {HERE: 0.0} if all(made == wanted for made, wanted in done) else {}
        from pipeline.planning.devices import is_device
        from pipeline.planning.plan import gpu_hours  # imports an HTTP client

        self.renew()
        states = {state.run: state for state in campaign.runs}
        left = [(job, share) for job in self.planned if (share := share_left(job, states))]
        if on_cpu:
            known = [job.seconds * share / 3600 for job, share in left if job.seconds is not None]
            return {HERE: sum(known)} if known or not left else {}
        used = [name for name in self.devices if any(is_device(name, device) for device in campaign.hours)]
        named = used or [name for name, device in self.devices.items() if device.bf16]
        return {name: sum(gpu_hours(job, self.devices[name]) * share for job, share in left) for name in named}

    def renew(self) -> None:
        """Compute the plan again if it is old."""
        if self.planned and time.monotonic() - self.made < RENEWED_S:
            return
        from pipeline.planning.jobs import Jobs
        from pipeline.planning.run_forecast import MeasuredSpeed

        measured = MeasuredSpeed.read(self.calibration) if self.calibration.exists() else None
        found = Jobs(self.project, self.papers, measured).all
        self.made, self.planned = time.monotonic(), [job for job in found if job.on_device]


def share_left(job: "Job", states: Mapping[RunId, RunState]) -> float:
    """Return the share of a job that is not done; a training counts by its last step in `states`."""
    state = states.get(job.run) if job.run and job.kind == "train" else None
    return 1 - (state.step / state.steps if state else job.done)


def print_plain(content: RenderableType) -> None:
    """Print in the width of the terminal, or as plain lines of fixed width in a log."""
    if sys.stdout.isatty():
        Console().print(content)
        return
    plain = Console(width=WIDTH, color_system=None)
    with plain.capture() as printed:
        plain.print(content)
    print("\n".join(line.rstrip() for line in printed.get().splitlines()), flush=True)


def runs_to_request(project: Project, requested: Iterable[Artifact], campaign: Campaign) -> list[str]:
    """List lost trainings that Snakemake rebuilds only if they are named.

    Snakemake does not look at the inputs of reports that exist.

    Returns:
        The target files of the trainings; none if a report is missing.
    """
    if not all(is_made(project.layout.path(artifact)) for artifact in requested):
        return []
    return [str(project.layout.path(Trained(state.run))) for state in campaign.of_state("not run")]


def command_for(settings: Sequence[str], targets: list[str], by_slurm: bool) -> str:
    """Return the command that resumes a campaign of `targets` with the user's `settings`, `by_slurm` if available."""
    profile = " --profile slurm" if by_slurm and shutil.which("sbatch") else ""
    config = f" --config {' '.join(map(shlex.quote, settings))}" if settings else ""
    return f"snakemake{profile}{config} -- {' '.join(map(shlex.quote, targets))}"

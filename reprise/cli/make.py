"""The command `make`: run Snakemake with one screen or one line per event."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import IO, Annotated, Any

from filelock import lock_descriptor
from rich.live import Live

from pipeline.core.artifacts import Report
from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError, count_of
from pipeline.core.files import write_errors
from pipeline.papers.config_file import parse_settings
from pipeline.papers.project import Project, Settings
from pipeline.training.progress import clock
from pipeline.workflow.campaign import Campaign, Watch, describe_process
from pipeline.workflow.failures import MAKE_LOG
from pipeline.workflow.graph import Graph
from pipeline.workflow.targets import reports_asked_for
from reprise.find_runs import find_project
from reprise.screen import screen

log = logging.getLogger(__name__)

SNAKEMAKE = ("-m", "snakemake", "--quiet", "rules", "host", "reason")
"""Arguments of the interpreter, to which others may be added."""
EVERY_S = 1.0
DETAIL = re.compile(
    r"$|(Select|Execute|Finished|Touching|Using|Building|Provided|Rules|Config|Assuming|Complete|Exiting|Elapsed)"
    r"|\[... |\d+ of \d+ steps|error: |failed: "
)
"""Beginnings of Snakemake lines that are no events, or are repeated at the end."""
REASONS, DRY_RUN = "Reasons:", "This was a dry-run "
"""Beginnings of the first and of the last line that a dry run prints about why something would run."""
NOT_FORESEEN = re.compile(r"Warning: the following output files of rule decode were not present when the DAG was")
"""Beginning of a warning of two lines: a training job has decoded already, as it should."""
FIRST_SHARE = 0.02
"""Share of all training steps below which the pace is unreliable."""
FAULT = "WorkflowError in file "
"""Beginning of an error of the Snakefile, which is repeated at the end. It ends in its place in the file."""
RULE_FAILED, COMMAND_ENDED = "RuleException:", re.compile(r"(returned non-zero exit status \d+|died with .*)\.$")
"""First and last line of the failed command that Snakemake prints."""
EVENT = re.compile(r"\d\d:\d\d:\d\d ")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def make(
    targets: Annotated[tuple[str, ...], Argument(metavar="TARGET")],
    *,
    cores: Annotated[str | None, Argument(metavar="N")] = None,
    dry_run: Annotated[bool, Argument(short="-n")] = False,
    settings: Settings = (),
) -> None:
    """Run Snakemake for some targets, and show its progress.

        reprise make results/table2.csv
        reprise make --set scale=small --cores 4 weighted

    Shows one screen on a terminal, and one line per event in a log. For other targets use `snakemake` itself. An
    interrupt is passed on, and trainings save their state: the same command resumes them.

    reads   what `reprise status` reads
    writes  work/<scale>/logs/make.log: the output of Snakemake; make-2.log while another `reprise make` runs

    Args:
        targets: Papers, `all`, or files in results/.
        cores: CPU cores that Snakemake uses at once, or `all`; by default those of the profile.
        dry_run: Only show in a few lines what would run.
        settings: Override a key of config.yaml. May be given several times.

    Raises:
        UserError: A target or the number of cores is wrong, or Snakemake failed.
    """
    if cores and cores != "all" and not (cores.isdecimal() and int(cores)):
        raise UserError(f"--cores {cores}: must be a number, at least 1, or `all`")
    changed = parse_settings(settings)
    project = find_project(changed)
    graph = Graph(project)
    reports = [report for target in targets for report in reports_asked_for(graph, target)]
    watch = Watch(project, reports)
    config = ["--config", *(f"{key}={json.dumps(value)}" for key, value in changed.items())] if changed else []
    options = [*config, *(["--cores", cores] if cores else [])]
    if dry_run:
        print_dry_run([*options, "--", *targets], project)
        return
    begun, title = time.monotonic(), " ".join(targets)
    with Workflow([*options, "--", *targets], project) as workflow:
        show_screen(workflow, watch, title) if sys.stdout.isatty() else print_events(workflow)
    counts = ((there, name.removesuffix("s")) for name, (there, _) in watch.snapshot().made.items() if there)
    made = ", ".join(count_of(there, name) for there, name in counts)
    took = f"{(time.monotonic() - begun) / 60:.1f} minutes"
    print(f"{title}: made of {made}, in {folder_of(reports, project)}; {took}", flush=True)


def folder_of(reports: Iterable[Report], project: Project) -> Path:
    """Return the folder of some reports: that of their paper, or that of their scale."""
    return Path(os.path.commonpath([project.layout.path(report).parent for report in reports]))


def print_dry_run(arguments: Sequence[str], project: Project) -> None:
    """Print in a few lines what Snakemake would run.

    Args:
        arguments: Arguments of Snakemake.
        project: The project.

    Raises:
        UserError: Snakemake failed; the message contains its errors.
    """
    command = [sys.executable, *SNAKEMAKE, "progress", "--dry-run", *arguments]
    done = subprocess.run(command, cwd=project.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode:
        raise UserError("\n".join(causes(lines)))
    shown = True
    for line in events(lines, lambda: False):
        shown = shown and not line.startswith(REASONS)
        if line.startswith(DRY_RUN):
            shown = True
        elif shown:
            print(line)


class Workflow:
    """A running Snakemake in its own process group; leaving the context waits for its end.

    Raises:
        UserError: It failed; the message contains its errors.
        SystemExit: It was interrupted.
    """

    def __init__(self, arguments: list[str], project: Project):
        self.command = [sys.executable, *SNAKEMAKE, *arguments]
        self.root, self.log = project.root, project.layout.scale_folder / MAKE_LOG
        self.received: int | None = None

    def __enter__(self) -> "Workflow":
        """Start Snakemake, and forward signals to it."""
        with write_errors(self.log):
            self.log.parent.mkdir(parents=True, exist_ok=True)
            log = self.open_log()
            self.begin = log.tell()
        options: dict[str, Any] = {"cwd": self.root, "start_new_session": True, "stderr": subprocess.STDOUT}
        try:
            self.process = subprocess.Popen(self.command, stdout=log, stdin=subprocess.DEVNULL, **options)
        finally:
            with suppress(OSError):  # this process wrote nothing, and Snakemake runs already
                log.close()
        heeded = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # not after `nohup`
        self.before = {number: signal.signal(number, self.forward) for number in heeded}
        return self

    def open_log(self) -> IO[bytes]:
        """Open the log, or `make-2.log` and so on while another `reprise make` of this scale writes to it.

        The lock ends with the last process that has the file open.

        Returns:
            The open file.
        """
        number = 1
        while True:
            log = open(self.log, "ab")  # noqa: SIM115 - Snakemake keeps it open
            with suppress(OSError):  # without file locks they share a log
                if not lock_descriptor(log.fileno(), blocking=False):
                    log.close()
                    number += 1
                    self.log = self.log.with_name(f"make-{number}.log")
                    continue
            return log

    def forward(self, number: int, frame: object) -> None:
        """Forward a signal to the process group, as `signal.signal` passes its `number` and the interrupted `frame`."""
        self.received = number
        with suppress(ProcessLookupError):  # Snakemake has just ended
            os.killpg(self.process.pid, number)

    def __exit__(self, *raised: object) -> None:
        """Wait for the end, and raise what the class describes."""
        status = self.process.wait()
        for number, handler in self.before.items():
            signal.signal(number, handler)
        if self.received:
            print("stopped; run the same command to resume", file=sys.stderr)
            sys.exit(128 + self.received)
        if status and raised == (None, None, None):
            whole = self.log.read_bytes()[self.begin :].rpartition(b"\n")[0]  # a full disk cuts the last line off
            errors = "\n".join(causes(whole.decode(errors="replace").splitlines()))
            raise UserError(f"{errors}\nthe whole output is in {self.log}")

    def in_words(self) -> str:
        """Return where Snakemake runs, with a note if it was interrupted."""
        return describe_process(self.process.pid) + (" (stopping)" if self.received else "")

    def ticks(self) -> Iterator[None]:
        """Yield every second until Snakemake ends, and once after."""
        while self.process.poll() is None:
            yield
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(EVERY_S)
        yield

    def lines(self) -> Iterator[str]:
        """Yield each line of output once it is complete."""
        with open(self.log, encoding="utf-8", errors="replace") as log:
            log.seek(self.begin)
            part = ""
            for _ in self.ticks():
                *lines, part = (part + log.read()).split("\n")
                yield from lines


def causes(output: list[str]) -> list[str]:
    """Return the distinct errors of jobs in Snakemake's output, with their logs, or the workflow's error."""
    errors = [line.removeprefix("error: ") for line in output if line.startswith("error: ")]
    if found := [error for error in errors if not any(other.startswith(f"{error} (log: ") for other in errors)]:
        return list(dict.fromkeys(found))
    begins = [index for index, line in enumerate(output) if re.match(r"\w+(Error|Exception) in file ", line)]
    after = output[begins[-1] + 1 :] if begins else []
    return list(takewhile(lambda line: line.strip() and not line.startswith("  File "), after)) or output[-5:]


def events(lines: Iterable[str], is_interrupted: Callable[[], bool]) -> Iterator[str]:
    """Filter the output of Snakemake.

    Args:
        lines: Lines of output.
        is_interrupted: Returns whether the user interrupted it; then only lines of trainings are kept.

    Yields:
        Events, and for a failed command the name of its log.
    """
    command: list[str] = []
    lines = iter(lines)
    for line in lines:
        if NOT_FORESEEN.match(line):
            next(lines, None)
        elif line.startswith(FAULT):
            next((after for after in lines if after.startswith("  File ")), None)
        elif command or line == RULE_FAILED:
            command.append(line)
            if COMMAND_ENDED.search(line):
                if not is_interrupted():
                    yield from failure_in(command)
                command = []
            elif not command[1:2] or command[1].startswith("CalledProcessError"):
                continue
            else:  # the exception is not of a command
                yield from command
                command = []
        elif not DETAIL.match(line) and (EVENT.match(line) or not is_interrupted()):
            yield line
    yield from command  # a full disk cuts its end off


def failure_in(command: list[str]) -> list[str]:
    """Name the log of a failed command, which it names last; without one return the command."""
    logs = re.findall(r"[^\s'>]+\.log\b", "\n".join(command))
    return [f"failed: more in {logs[-1]}"] if logs else command


def show_screen(workflow: Workflow, watch: Watch, title: str) -> None:
    """Show the state of a campaign on a terminal until Snakemake ends.

    Args:
        workflow: The running Snakemake.
        watch: Reader of the campaign's state.
        title: First line of the screen, to which the remaining time is added.
    """
    pace = Pace()
    with Live(screen=True, auto_refresh=False) as live:
        for _ in workflow.ticks():
            campaign = watch.snapshot()
            if not campaign.driver and workflow.process.poll() is None:  # it registers late, and ends after its jobs
                campaign = replace(campaign, driver=workflow.in_words())
            live.update(screen(campaign, f"{title}{pace.left(campaign)}", None, ""), refresh=True)


def print_events(workflow: Workflow) -> None:
    """Print one line per event until Snakemake ends."""
    for line in events(workflow.lines(), lambda: workflow.received is not None):
        print(line, flush=True)


class Pace:
    """Estimate of the remaining time from the training steps per second since the start."""

    def __init__(self) -> None:
        self.begun: tuple[float, float] | None = None

    def left(self, campaign: Campaign) -> str:
        """Return the remaining time in words; empty if it is not known."""
        now, done = time.monotonic(), campaign.share
        self.begun = self.begun or (now, done)
        since, gained = now - self.begun[0], done - self.begun[1]
        return f": {clock(since * (1 - done) / gained)} left, by its pace" if gained > FIRST_SHARE and done < 1 else ""

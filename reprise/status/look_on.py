"""Watch a running Snakemake: as a screen, or as the events of its output."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from typing import Any

from rich.live import Live

from pipeline.core.errors import UserError
from pipeline.core.files import write_errors
from pipeline.papers.project import Project
from pipeline.training.progress import clock
from pipeline.workflow.campaign import Campaign, Watch
from pipeline.workflow.failures import MAKE_LOG
from reprise.status.screen import screen

EVERY_S = 1.0
DETAIL = re.compile(
    r"$|(Select|Execute|Finished|Touching|Using|Building|Provided|Rules|Config|Assuming|Complete|Exiting|Elapsed)"
    r"|\[... |\d+ of \d+ steps|error: |failed: "
)
"""Beginnings of Snakemake lines that are no events, or are repeated at the end."""
FIRST_SHARE = 0.02
"""Share of all training steps below which the pace is unreliable."""
RULE_FAILED, COMMAND_ENDED = "RuleException:", re.compile(r"(returned non-zero exit status \d+|died with .*)\.$")
"""First and last line of the failed command that Snakemake prints."""
EVENT = re.compile(r"\d\d:\d\d:\d\d ")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Workflow:
    """A running Snakemake in its own process group; leaving the context waits for its end.

    Raises:
        UserError: It failed; the message contains its errors.
        SystemExit: It was interrupted.
    """

    def __init__(self, arguments: list[str], project: Project):
        self.command = [sys.executable, "-m", "snakemake", "--quiet", "rules", "host", "reason", *arguments]
        self.root, self.log = project.root, project.layout.scale_folder / MAKE_LOG
        self.received: int | None = None

    def __enter__(self) -> "Workflow":
        """Start Snakemake, and forward signals to it."""
        with write_errors(self.log):
            self.log.parent.mkdir(parents=True, exist_ok=True)
            log = open(self.log, "ab")  # another may write to it, at the same scale
            self.begin = log.tell()
        with log:
            options: dict[str, Any] = {"cwd": self.root, "start_new_session": True, "stderr": subprocess.STDOUT}
            self.process = subprocess.Popen(self.command, stdout=log, stdin=subprocess.DEVNULL, **options)
        self.before = {number: signal.signal(number, self.hand_on) for number in SIGNALS}
        return self

    def hand_on(self, number: int, frame: object) -> None:
        """Forward a signal."""
        self.received = number
        with suppress(ProcessLookupError):
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
            said = "\n".join(causes(whole.decode(errors="replace").splitlines()))
            raise UserError(f"{said}\nthe whole output is in {self.log}")

    def works(self) -> Iterator[None]:
        """Yield every second until Snakemake ends, and once after."""
        while self.process.poll() is None:
            yield
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(EVERY_S)
        yield


def causes(said: list[str]) -> list[str]:
    """Return the distinct errors of jobs, with their logs if named; else the error of the workflow."""
    errors = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
    if found := [one for one in errors if not any(other.startswith(f"{one} (log: ") for other in errors)]:
        return list(dict.fromkeys(found))
    begins = [index for index, line in enumerate(said) if re.match(r"\w+(Error|Exception) in file ", line)]
    told = takewhile(
        lambda line: line.strip() and not line.startswith("  File "), said[begins[-1] + 1 :] if begins else []
    )
    return list(told) or said[-5:]


def events(lines: Iterable[str], is_interrupted: Callable[[], bool]) -> Iterator[str]:
    """Filter the output of Snakemake.

    Args:
        lines: Lines of output.
        is_interrupted: Tells whether the user interrupted it; then only lines of trainings are kept.

    Yields:
        Events, and for a failed command the name of its log.
    """
    command: list[str] = []
    for line in lines:
        if command or line == RULE_FAILED:
            command.append(line)
            if COMMAND_ENDED.search(line):
                if not is_interrupted():
                    yield from failure_in(command)
                command = []
            elif not command[1:2] or command[1].startswith("CalledProcessError"):
                continue
            else:  # it was no command
                yield from command
                command = []
        elif not DETAIL.match(line) and (EVENT.match(line) or not is_interrupted()):
            yield line
    yield from command  # a full disk cuts its end off


def failure_in(command: list[str]) -> list[str]:
    """Name the log of a failed command, which it names last; without one return the command."""
    logs = re.findall(r"[^\s'>]+\.log\b", "\n".join(command))
    return [f"failed: more in {logs[-1]}"] if logs else command


def look_on(workflow: Workflow, watch: Watch, title: str) -> None:
    """Show the screen until Snakemake ends."""
    pace = Pace()
    with Live(screen=True, auto_refresh=False) as live:
        for _ in workflow.works():
            campaign = watch.look()
            live.update(screen(campaign, f"{title}{pace.left(campaign)}", None, ""), refresh=True)


def relay(workflow: Workflow) -> None:
    """Print one line per event until Snakemake ends."""
    for line in events(said_by_workflow(workflow), lambda: workflow.received is not None):
        print(line, flush=True)


def said_by_workflow(workflow: Workflow) -> Iterator[str]:
    """Yield each line of output once it is complete."""
    with open(workflow.log, encoding="utf-8", errors="replace") as log:
        log.seek(workflow.begin)
        part = ""
        for _ in workflow.works():
            *lines, part = (part + log.read()).split("\n")
            yield from lines


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

"""Looking on while Snakemake works: its screen, or the events among what it says."""

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
"""How lines of Snakemake begin that are no event, or are said in the end."""
FIRST_SHARE = 0.02
"""Of all updates, before which their pace says nothing."""
RULE_FAILED, COMMAND_ENDED = "RuleException:", re.compile(r"(returned non-zero exit status \d+|died with .*)\.$")
"""How Snakemake begins and ends the repetition of a command that failed."""
EVENT = re.compile(r"\d\d:\d\d:\d\d ")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Workflow:
    """Snakemake at work, in a process group of its own; as a context, until it has ended.

    Raises:
        UserError: at the end, it failed: with what it said of that.
        SystemExit: it was interrupted.
    """

    def __init__(self, arguments: list[str], project: Project):
        self.command = [sys.executable, "-m", "snakemake", "--quiet", "rules", "host", "reason", *arguments]
        self.root, self.log = project.root, project.layout.scale_folder / MAKE_LOG
        self.received: int | None = None

    def __enter__(self) -> "Workflow":
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
        self.received = number
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def __exit__(self, *raised: object) -> None:
        status = self.process.wait()
        for number, handler in self.before.items():
            signal.signal(number, handler)
        if self.received:
            print("stopped; the same command goes on from there", file=sys.stderr)
            sys.exit(128 + self.received)
        if status and raised == (None, None, None):
            whole = self.log.read_bytes()[self.begin :].rpartition(b"\n")[0]  # a full disk cuts the last line off
            said = "\n".join(causes(whole.decode(errors="replace").splitlines()))
            raise UserError(f"{said}\nwhat was said before is in {self.log}")

    def works(self) -> Iterator[None]:
        """Every second until it has ended, and once more."""
        while self.process.poll() is None:
            yield
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(EVERY_S)
        yield


def causes(said: list[str]) -> list[str]:
    """Why it failed: errors of jobs, each once and with its log where that is named; else that of the workflow."""
    errors = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
    if found := [one for one in errors if not any(other.startswith(f"{one} (log: ") for other in errors)]:
        return list(dict.fromkeys(found))
    begins = [index for index, line in enumerate(said) if re.match(r"\w+(Error|Exception) in file ", line)]
    told = takewhile(
        lambda line: line.strip() and not line.startswith("  File "), said[begins[-1] + 1 :] if begins else []
    )
    return list(told) or said[-5:]


def events(lines: Iterable[str], is_interrupted: Callable[[], bool]) -> Iterator[str]:
    """Of what Snakemake says, events; of a command that failed, its log. Once interrupted, what trainings say."""
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
    yield from command  # whose end was never said, as on a full disk


def failure_in(command: list[str]) -> list[str]:
    """Which log has more on it: the one that the command names last, else the command. The cause is said in the end."""
    logs = re.findall(r"[^\s'>]+\.log\b", "\n".join(command))
    return [f"failed: more in {logs[-1]}"] if logs else command


def look_on(workflow: Workflow, watch: Watch, title: str) -> None:
    """The screen of a terminal."""
    pace = Pace()
    with Live(screen=True, auto_refresh=False) as live:
        for _ in workflow.works():
            campaign = watch.look()
            live.update(screen(campaign, f"{title}{pace.left(campaign)}", None, ""), refresh=True)


def relay(workflow: Workflow) -> None:
    """A line an event."""
    for line in events(said_by_workflow(workflow), lambda: workflow.received is not None):
        print(line, flush=True)


def said_by_workflow(workflow: Workflow) -> Iterator[str]:
    """Each line, once it is whole."""
    with open(workflow.log, encoding="utf-8", errors="replace") as log:
        log.seek(workflow.begin)
        part = ""
        for _ in workflow.works():
            *lines, part = (part + log.read()).split("\n")
            yield from lines


class Pace:
    """How long it will still take, by how fast the updates of all trainings went since the start."""

    def __init__(self) -> None:
        self.begun: tuple[float, float] | None = None

    def left(self, campaign: Campaign) -> str:
        now, done = time.monotonic(), campaign.share
        self.begun = self.begun or (now, done)
        since, gained = now - self.begun[0], done - self.begun[1]
        return f": {clock(since * (1 - done) / gained)} left, by its pace" if gained > FIRST_SHARE and done < 1 else ""

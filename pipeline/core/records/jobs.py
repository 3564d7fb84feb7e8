"""The record of a finished job, and `state.jsonl`: the events of the jobs of a folder, oldest first.

Launchers, jobs and the tasks of a job append to one file, on several machines at once. Each event is one line, written
under a lock on the file, so no writer loses the line of another. Nothing is ever removed: the last event of a kind
counts.
"""

import logging
import os
import time
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field

from pipeline.core.errors import UnreadableError, UserError
from pipeline.core.files import Disk, acquire_lock, append_line, path_aside, replace_file, write_errors
from pipeline.core.layout import STATE_FILE
from pipeline.core.records.record import Record, parse_record
from pipeline.core.retries import read_with_retries, retry_read

log = logging.getLogger(__name__)


class Done(Record):
    """The fields of `done.json` that all jobs have; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    key: str
    weights_digest: str | None = Field(
        default=None, description="SHA-256 of the final weights, if the job is a training"
    )


class TimedRecord(Record):
    """An event with its time, by the clock of its machine."""

    time: float = Field(default_factory=lambda: time.time(), description="UNIX seconds")


class JobCommand(Record):
    """The stage to run in this folder; none in the folder of a run, which is trained."""

    event: Literal["command"] = "command"
    key: str
    arguments: list[str]
    outputs: list[str]


class Decodings(Record):
    """Plan of the decodings at the end of a training job; see `PlannedTraining` in pipeline/outputs/plan.py."""

    event: Literal["decodings"] = "decodings"
    planned: dict[str, Any]


class Submission(TimedRecord):
    """A job that a launcher submitted or adopted."""

    event: Literal["submit"] = "submit"
    key: str
    launcher: str
    job: str | None = Field(description="None between the decision to submit and Slurm's answer")
    name: str
    code: str = Field(description="Digest of the package")
    user: int = Field(default_factory=os.getuid, description="Number of the user; earlier versions did not record it")


class RunClaim(TimedRecord):
    """A process that takes over the run; the last one owns it."""

    event: Literal["claim"] = "claim"
    host: str
    pid: int
    job: str
    token: str


class StartLine(TimedRecord):
    """A start or stop of the process that works on the run."""

    event: Literal["start", "stop"]
    job: str
    restart: int
    node: str
    pid: int
    checkpoint: int | None = Field(default=None, description="At a start: step of the newest checkpoint, 0 = none")
    outcome: str | None = Field(default=None, description="At a stop: done, failed, stopped or taken over")


class UnfitNode(TimedRecord):
    """A node that failed its check."""

    event: Literal["unfit"] = "unfit"
    node: str
    reason: str
    job: str


class Failure(TimedRecord):
    """The job failed, and another start would fail again."""

    event: Literal["fail"] = "fail"
    key: str
    job: str
    node: str
    rank: int
    error: str
    traceback: str | None = Field(description="None for an error that the user has to fix")


class Retry(TimedRecord):
    """A launcher was asked to retry: earlier failures no longer count."""

    event: Literal["retry"] = "retry"


Event = JobCommand | Decodings | Submission | RunClaim | StartLine | UnfitNode | Failure | Retry
AnyEvent = Annotated[Event, Field(discriminator="event")]
Kind = TypeVar("Kind", bound=Event)


def record_event(folder: Path, event: Event) -> int:
    """Return the end of the line, in bytes, of an `event` appended to the `state.jsonl` of a `folder`, made if needed.

    Raises:
        UserError: The file cannot be written, or its file system has no locks.
    """
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return append_line(folder / STATE_FILE, event.line().encode(), shared=True)


def read_events(folder: Path, after: int = 0) -> list[Event]:
    """Return the events of a `folder`, oldest first, that stand `after` this byte; none if it cannot be read.

    The folder is listed first, because NFS may hide a fresh file. Lines that a crash cut or altered are left out and
    logged once.
    """
    try:
        names = retry_read(folder, lambda: os.listdir(folder))
        content = read_with_retries(folder / STATE_FILE) if STATE_FILE in names else b""
    except (UnreadableError, FileNotFoundError):
        return []
    events: list[Event] = []
    *lines, cut = content[after:].split(b"\n")  # the last one may be of a writer that is not done
    for number, line in enumerate([*lines, cut], start=content[:after].count(b"\n") + 1):
        try:
            events += [parse_record(AnyEvent, line, STATE_FILE)] if line else []
        except UserError:
            if line is not cut:
                log_damage(folder / STATE_FILE, number)
    return events


@cache
def log_damage(path: Path, number: int) -> None:
    """Log that line `number` (from 1) of `path` is damaged, once per process."""
    log.warning("%s: line %d is damaged and left out", path, number)


def remove_damaged_lines(path: Path, kind: Any = AnyEvent) -> Path:
    """Return a copy of a file, from which lines without a record are removed, under the lock of appending to events.

    Args:
        path: A `state.jsonl`, or a log of a training.
        kind: Type of its records.

    Raises:
        UserError: A file cannot be written, or the file system has no locks.
    """

    def is_whole(line: bytes) -> bool:
        try:
            parse_record(kind, line, path.name)
        except UserError:
            return False
        return line.endswith(b"\n")

    aside = path_aside(path)
    with write_errors(path), Disk(path, path, "r+b") as handle:
        acquire_lock(handle.fileno())
        content = handle.readall()
        with replace_file(aside, "wb") as copy:
            copy.write(content)
        lines = content.splitlines(keepends=True)
        whole = [*takewhile(is_whole, lines)]
        rest = b"".join(line for line in lines[len(whole) :] if is_whole(line))
        handle.truncate(handle.seek(sum(map(len, whole))))
        while rest:
            rest = rest[handle.write(rest) :]  # a full disk may take a part, before it refuses the next
        os.fsync(handle.fileno())
    return aside


def last_event(kind: type[Kind], folder: Path) -> Kind | None:
    """Return the last event of a `kind` in a `folder`; None if there is none."""
    return next((event for event in reversed(read_events(folder)) if isinstance(event, kind)), None)


class QueueSnapshot(Record):
    """The last answer of Slurm about the jobs of a user."""

    asked: float = Field(description="When Slurm was last asked; seconds of the machine's monotonic clock")
    taken: float = Field(description="When it last answered, by the same clock")
    interval: float = Field(description="Seconds until the next query")
    jobs: list[list[str]] = Field(description="(job, state, reason, nodes, name)")

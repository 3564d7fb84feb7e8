"""What failed and why: by the notes of jobs and the logs of stages, which are written anew when one is tried again."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.cluster.markers import read_starts
from pipeline.core.errors import UserError, one_line, without_secrets
from pipeline.core.files import tail
from pipeline.core.records.jobs import Failure
from pipeline.core.records.record import read_note

MAKE_LOG = "logs/make.log"
TAIL_BYTES = 1 << 16


@dataclass(frozen=True)
class Failed:
    """A stage that ended in an error, and was not begun again.

    Attributes:
        stage: as its log is called, such as `train` or `translate-final-test`.
        folder: of the run or corpus that it belongs to.
        log: what has more on it.
        is_bug: whether nobody foresaw it.
    """

    stage: str
    folder: Path
    cause: str
    log: Path
    is_bug: bool


def failures(folder: Path) -> Iterator[Failed]:
    """Of the stages of a run or corpus; one for each log. `reprise make` keeps in one of them what all of them said."""
    notes = {folder / "logs/train.log": folder / "failed.json"}
    for log in sorted({*(folder / "logs").glob("*.log"), *notes} - {folder / MAKE_LOG}):
        note = read_note(Failure, notes[log]) if log in notes else None
        cause, is_bug = (note.error, note.traceback is not None) if note else said_by(log)
        if cause:
            yield Failed(log.stem, folder, cause, log, is_bug)


def said_by(log: Path) -> tuple[str, bool]:
    """The line in which a stage said why it failed, and whether it was taken by surprise; empty if it did not fail."""
    try:
        lines = tail(log, TAIL_BYTES).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return "", False
    if errors := [line for line in lines if line.startswith("error: ")]:
        return errors[-1].removeprefix("error: "), False
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        return next(line for line in reversed(lines) if line.strip()), True
    return "", False


def was_taken_over(run: Path, since: float) -> bool:
    """Whether a later job or process had one that worked on a run let go of it, after `since` (UNIX seconds)."""
    with contextlib.suppress(UserError):  # a line that can't be read
        return any(line.outcome == "taken over" and line.time >= since for line in read_starts(run))
    return False


def first_line(cause: str) -> str:
    """With what a terminal would obey escaped."""
    return one_line(without_secrets(cause.strip()).split("\n")[0])

"""Failed stages and their causes, from the state files of jobs and the logs of stages.

A log is overwritten when its stage is retried.
"""

import contextlib
import logging
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.cluster.state import read_failure, read_starts
from pipeline.core import artifacts
from pipeline.core.errors import UserError, one_line, without_secrets
from pipeline.core.files import tail
from pipeline.core.layout import Layout

MAKE_LOG, TRAIN_LOG = "logs/make.log", "logs/train.log"
TAIL_BYTES = 1 << 16
OWN_CODE = re.compile(r'^ +File "(?!.*/lib(?:64)?/python)(?:.*/)?((?:pipeline|reprise)/.*)", line (\d+)', re.MULTILINE)
"""Lines of a traceback about this project; packages lie in `lib*/python3.*`, perhaps inside the project's folder."""


@dataclass(frozen=True)
class Failed:
    """A stage that ended in an error and was not restarted.

    Attributes:
        stage: Name of its log, such as `train` or `decode-final`.
        folder: The run or corpus that it belongs to.
        cause: The error message.
        bug_in: Place in the code if the error is a fault of this program or of an own architecture; else empty.
    """

    stage: str
    folder: Path
    cause: str
    log: Path
    bug_in: str


def failures(folder: Path) -> Iterator[Failed]:
    """Yield the failed stages of a run or corpus, one per log.

    The logs of `reprise make` repeat all of them and are skipped.
    """
    repeated = (folder / "logs").glob("make*.log")
    for log in sorted({*(folder / "logs").glob("*.log"), folder / TRAIN_LOG} - {*repeated}):
        if found := failure_of(folder, log):
            yield found


def failure_of(folder: Path, log: Path) -> Failed | None:
    """Return the failure of the stage with this `log` in the `folder` of a run or corpus; None without one."""
    note = read_failure(folder) if log == folder / TRAIN_LOG else None
    cause, bug_in = (note.error, failed_code(note.traceback or "")) if note else logged_error(log)
    return Failed(log.stem, folder, cause, log, bug_in) if cause else None


def logged_error(log: Path) -> tuple[str, str]:
    """Return the error in a log, and the code that raised an unexpected one; empty if the stage did not fail."""
    try:
        lines = tail(log, TAIL_BYTES).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return "", ""
    if errors := [line for line in lines if line.startswith("error: ")]:
        return errors[-1].removeprefix("error: "), ""
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        return next(line for line in reversed(lines) if line.strip()), failed_code("\n".join(lines))
    return "", ""


def failed_code(traceback: str) -> str:
    """Return the innermost file and line of this project in a `traceback`, else `the program`; empty without a text.

    If one exception caused another, such as one in a worker process, the place is that of the first.
    """
    if not traceback:
        return ""
    found = OWN_CODE.findall(traceback.partition("\nThe above exception was the direct cause")[0])
    return "{}, line {}".format(*found[-1]) if found else "the program"


def was_taken_over(run: Path, since: float) -> bool:
    """Return whether another job or process took the folder `run` over after `since` (UNIX seconds)."""
    with contextlib.suppress(UserError):  # an unreadable line
        return any(line.outcome == "taken over" and line.time >= since for line in read_starts(run))
    return False


def first_line(cause: str) -> str:
    """Return the first line of a cause, safe for terminals."""
    return one_line(without_secrets(cause.strip()).split("\n")[0])


CORPUS_STAGES: dict[type[artifacts.DatasetArtifact], tuple[str, ...]] = {
    artifacts.Raw: ("generate", "download"),
    artifacts.Spoken: ("speak",),
    artifacts.Prepared: ("prepare",),
    artifacts.Vocabulary: ("subwords",),
    artifacts.Encoded: ("encode", "features"),
}


def logs_of(layout: Layout, artifact: artifacts.Artifact) -> list[Path]:
    """Return the logs of the jobs that make an artifact."""
    return [layout.log(artifact, stage) for stage in stages_of(artifact)]


def stages_of(artifact: artifacts.Artifact) -> list[str]:
    """Return the names of an artifact's logs; none for a training, whose end is recorded (runs.py)."""
    match artifacts.manifest_of(artifact):
        case artifacts.DatasetArtifact() as made:
            return [*CORPUS_STAGES[type(made)]]
        case artifacts.Outputs(_, decoding):
            return [f"decode-{decoding}"]
        case artifacts.Scores(_, decoding):
            return [f"score-{decoding}"]
        case artifacts.ModelSizes(paper):
            return [f"model-sizes-{paper}"]
        case artifacts.LayerTimes():
            return ["layer-times"]
        case artifacts.Table(paper, name) | artifacts.Figure(paper, name):
            return [f"{paper}-{name}"]
        case artifacts.Claims(paper):
            return [f"{paper}-claims"]
    return []


EXECUTOR_SUFFIXES = ("For further error details", "\n    sbatch call")
"""Starts of the hints that Snakemake and its executor append to each message."""


class ExecutorErrorHandler(logging.Handler):
    """A log handler that copies an executor's error into the log of the stage, unless the stage logged its own error.

    Attributes:
        failed_logs: Logs of all failed jobs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.since = time.time()
        self.failed_logs: list[Path] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one event of Snakemake."""
        if getattr(getattr(record, "event", None), "value", None) != "job_error":
            return
        message = getattr(record, "rule_msg", None) or ""
        for added in EXECUTOR_SUFFIXES:
            message = message.partition(added)[0]
        own = [log for log in map(Path, getattr(record, "log", None) or ()) if ".snakemake" not in log.parts]
        self.failed_logs += own
        with contextlib.suppress(OSError):  # on a full disk the workflow continues
            for log in own if message.strip() else ():
                self.take_over(" ".join(message.split()), log)

    def take_over(self, message: str, log: Path) -> None:
        """Append the executor's one-line `message` to a stage's `log` that has no error of this attempt."""
        if log.exists() and log.stat().st_mtime >= self.since and logged_error(log)[0]:
            return
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "a", encoding="utf-8") as end:
            end.write(f"error: {message}\n")

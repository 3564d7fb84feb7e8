"""The user's jobs on Slurm: one shared snapshot for all launchers on this machine.

Sites complain about users whose jobs all query the controller. Here the first launcher that finds the snapshot too
old locks the file and renews it, and all others read it. The interval grows while nothing changes. Only squeue is
needed, no accounting. The snapshot is on the machine's own disk, where files can be locked. Its times are those of
the monotonic clock, which all processes share and no process sets.
"""

import contextlib
import csv
import logging
import math
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import RawIOBase
from pathlib import Path
from typing import Literal

from filelock import lock_descriptor

from pipeline.core.digests import sha256_json
from pipeline.core.disk import own_folder
from pipeline.core.errors import UserError
from pipeline.core.files import write_errors
from pipeline.core.records.jobs import QueueSnapshot
from pipeline.core.schema import Closed, validate

log = logging.getLogger(__name__)

# Slurm's words for a job that has ended.
OVER = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"}
OVER |= {"REVOKED", "TIMEOUT"}
# Ended jobs stay visible for MinJobAge (300 s by default): longer intervals could miss that one was cancelled.
LONGEST_INTERVAL_S = 180.0
GROWTH = 1.25
# States of a job that has not ended and does not run; its reason says more.
WAITING = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
WAITING |= {"STOPPED", "SUSPENDED"}


CLUSTER_VARIABLES = ("SLURM_CONF", "SLURM_CLUSTERS")
"""Variables that name the cluster to every command of Slurm."""
TABLE = Path(__file__).with_name("reasons.csv")


class Reason(Closed):
    """A row of reasons.csv.

    Attributes:
        words: Pattern of Slurm's own words; the first row that matches counts.
        then: `waits` resolves itself, `stuck` needs somebody, `never` cannot start as requested.
        meaning: The reason in words.
        remedy: What to do, with {job} for the job id; empty if nothing.
    """

    words: str
    then: Literal["waits", "stuck", "never"]
    meaning: str
    remedy: str

    def describe(self, job: str) -> str:
        """Return meaning and remedy for a job that sbatch refused."""
        return self.meaning + (f": {self.remedy}" if self.remedy else "").format(job=job)

    def remedy_in_queue(self, job: str) -> str:
        """Return what to do about a `job` in the queue, which keeps what it once asked for; empty if nothing."""
        remedy = self.remedy.format(job=job)
        has_to_go = self.then == "never" and "scancel" not in remedy
        return f"{remedy}; then `scancel {job}` and the same command again" if has_to_go else remedy


@cache
def reasons() -> tuple[Reason, ...]:
    """Read the table of reasons."""
    with open(TABLE, encoding="utf-8", newline="") as file:
        return tuple(validate(Reason, row, str(TABLE)) for row in csv.DictReader(file))


def find_reason(words: str) -> Reason | None:
    """Return what state and reason of a waiting job, or an error of sbatch, mean; None if unknown."""
    return next((reason for reason in reasons() if re.search(reason.words, words, re.IGNORECASE)), None)


@dataclass(frozen=True)
class QueuedJob:
    """A line of squeue; the state is Slurm's word, or GONE if Slurm no longer knows the job."""

    job: str
    state: str
    reason: str = ""
    nodes: str = ""
    name: str = ""

    @property
    def is_over(self) -> bool:
        """Return whether the job has ended."""
        return self.state in OVER or self.state == "GONE"

    @property
    def reason_to_wait(self) -> Reason | None:
        """Return why the job waits; None if it does not, or for an unknown reason."""
        return find_reason(f"{self.state} {self.reason}") if self.state in WAITING else None

    @property
    def in_words(self) -> str:
        """Describe the state: `is running on n1`; `waits: other jobs come first`."""
        if self.state not in WAITING:
            return f"is {self.state.lower()}" + (f" on {self.nodes}" if self.nodes else "")
        if (reason := self.reason_to_wait) is None:
            return f"waits: {self.state} {self.reason}"
        return ": ".join(filter(None, ("waits", reason.meaning, reason.remedy_in_queue(self.job))))


def queue_interval() -> float:
    """Return the seconds that REPRISE_QUEUE_INTERVAL sets, else a minute.

    Raises:
        UserError: They are no positive number.
    """
    text = os.environ.get("REPRISE_QUEUE_INTERVAL", "60")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UserError(f"REPRISE_QUEUE_INTERVAL={text}: set the seconds between two queries of Slurm, such as 60")
    return seconds


class Queue:
    """The shared snapshot.

    Args:
        interval_s: Minimum number of seconds between two queries of all launchers together.
        folder: Folder of the snapshot.
    """

    def __init__(self, interval_s: float, folder: Path | None = None):
        self.path = (folder or own_folder()) / snapshot_name()
        self.interval_s = interval_s

    def jobs(self, newer_than: float) -> list[QueuedJob] | None:
        """Return the user's jobs, or None if Slurm has not answered after `newer_than`, in monotonic seconds."""
        snapshot = self._read()
        if snapshot.asked + snapshot.interval <= time.monotonic():
            snapshot = self._renew() or snapshot
        if snapshot.taken <= newer_than:
            return None
        return [QueuedJob(*row) for row in snapshot.jobs]

    def look_up(self, job: str, newer_than: float) -> QueuedJob | None:
        """Return a `job` by its id, GONE if Slurm no longer knows it; None without a snapshot `newer_than` that."""
        jobs = self.jobs(newer_than)
        if jobs is None:
            return None
        return next((found for found in jobs if found.job == job), QueuedJob(job, "GONE"))

    def reset_interval(self) -> None:
        """Return to the shortest interval, to watch a new job."""
        with self._locked() as file:
            snapshot = self._read()
            if file and snapshot.interval > self.interval_s:
                self._write(file, snapshot.model_copy(update={"interval": self.interval_s}))

    def _read(self) -> QueueSnapshot:
        """Read the snapshot; an empty one if it is missing, written in part, or older than this boot."""
        with contextlib.suppress(UserError):
            if (snapshot := QueueSnapshot.read(self.path)).asked <= time.monotonic():
                return snapshot
        return QueueSnapshot(asked=0.0, taken=0.0, interval=self.interval_s, jobs=[])

    def _renew(self) -> QueueSnapshot | None:
        """Query Slurm, unless another launcher is doing so."""
        with self._locked() as file:
            old = self._read()
            if not file or old.asked + old.interval > time.monotonic():
                return None
            asked = time.monotonic()
            jobs = query_slurm()
            if jobs is None:
                snapshot = old.model_copy(update={"asked": asked, "interval": self.interval_s})
            else:
                interval = next_interval(old.interval, self.interval_s) if jobs == old.jobs else self.interval_s
                snapshot = QueueSnapshot(asked=asked, taken=asked, interval=interval, jobs=jobs)
            self._write(file, snapshot)
            return snapshot

    def _write(self, file: RawIOBase, snapshot: QueueSnapshot) -> None:
        """Write the locked file in place, as a new file would not be locked.

        Readers treat a truncated file as missing.
        """
        content = snapshot.line().encode()
        with write_errors(self.path, "set TMPDIR to another folder"):
            file.truncate(0)
            while content:  # a nearly full disk takes a part, and then raises
                content = content[file.write(content) :]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[RawIOBase | None]:
        """Yield the file, or None if another process has locked it; the kernel releases the lock of a dead one."""
        with open(self.path, "ab", buffering=0) as file:
            try:
                locked = lock_descriptor(file.fileno(), blocking=False)
            except OSError as error:  # an unusual /tmp costs queries, but nothing else
                log.warning("%s: no file locks here (%s)", self.path, error.strerror)
                locked = True
            yield file if locked else None


def snapshot_name() -> str:
    """Return the name of the snapshot's file, another one for each cluster that the environment names."""
    named = [f"{name}={os.environ[name]}" for name in CLUSTER_VARIABLES if name in os.environ]
    return "-".join(["slurm-queue", *([sha256_json(named)[:8]] if named else [])]) + ".lock"


def next_interval(interval_s: float, shortest_s: float) -> float:
    """Return the seconds to wait after `interval_s` without a change; `shortest_s` are configured."""
    return max(shortest_s, min(interval_s * GROWTH, 3 * shortest_s, LONGEST_INTERVAL_S))


def query_slurm() -> list[list[str]] | None:
    """Return rows (job, state, reason, nodes, name) of one squeue of all the user's jobs; None without an answer."""
    # Variables that alter squeue's output or restrict it to a surrounding job are left out.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SQUEUE_", "SLURM_JOB"))}
    # By default squeue hides jobs in hidden partitions, and jobs that another cluster of a federation has started. With
    # --all, the clusters that did not start such a job list it, too, as REVOKED.
    command = ["squeue", "--me", "--all", "--sibling", "--noheader", "--states=all", "--format=%A|%T|%r|%N|%j"]
    try:
        answer = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # the name of another job may not be UTF-8
            timeout=60,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("squeue: %s", error)
        return None
    if answer.returncode:
        log.warning("squeue: %s", answer.stderr.strip())
        return None
    rows = [line.split("|", 4) for line in answer.stdout.split("\n") if line.count("|") >= 4]
    return [row for row in rows if row[1] != "REVOKED"]

"""Wait for a run to end, and decide whether to submit another job when one ended without a result.

Another job is submitted if the cluster stopped the last one (time limit, preemption without requeue, lost node) or if
it was killed, as long as the run makes progress. If the node was unfit, the next job excludes it. No other job is
submitted if the last one failed by itself, was cancelled, or needs more memory.
"""

import contextlib
import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from pipeline.cluster import state as run_state
from pipeline.cluster.queue import QueuedJob
from pipeline.core.errors import UserError
from pipeline.core.files import tail
from pipeline.core.records.jobs import Retry, UnfitNode, record_event

log = logging.getLogger(__name__)

DEATHS_WITHOUT_PROGRESS = 3  # jobs in a row; then the launcher gives up
UNFIT_NODES = 5  # then the launcher gives up
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 5.0  # between two checks of the run folder
# With version 2 of cgroups, the job's own state is then FAILED: Slurm sees no process of the batch script killed.
OOM_KILLED = re.compile(r"^slurmstepd.*: error: Detected \d+ oom.kill event", re.MULTILINE)
SETTLE_S = 10.0  # a network file system may show the last files of an ended job this late


class Jobs(Protocol):
    """The jobs of one run in one place (Slurm, or this machine)."""

    launcher: str

    def adopt(self) -> str | None:
        """Return the id of a live job of the run."""

    def submit(self) -> str:
        """Submit a job, and return its id."""

    def look_up(self, job: str) -> QueuedJob | None:
        """Return the state of a job."""

    def log_of(self, job: str) -> Path | None:
        """Return the log of a job."""

    def release(self, job: str | None) -> None:
        """Stop waiting for a job; None if this process was interrupted before it knew one."""

    def finish(self) -> None:
        """Clean up after a run that is done."""


class Waiter:
    """Waits for one run and submits as many jobs as it needs."""

    def __init__(self, run: Path, key: str, jobs: Jobs):
        self.run, self.key, self.jobs = run, key, jobs
        self.job: str | None = None
        self.reported: set[str] = set()
        self.deaths = 0
        self.unfit = 0
        self.reached = run_state.newest_checkpoint(run)

    def wait(self) -> None:
        """Submit and follow jobs until `done.json` has the run's key.

        Raises:
            UserError: The job failed, was cancelled, or dies repeatedly.
        """
        if run_state.read_failure(self.run):
            record_event(self.run, Retry())
        self.job = self.jobs.adopt()
        adopted = self.job is not None
        while not run_state.is_done(self.run, self.key):
            if self.job is None:
                self.job = self.jobs.submit()
            self._follow(self.job, from_start=not adopted)
            if not run_state.is_done(self.run, self.key):
                self.job, adopted = None, False
        if self.job:
            self.jobs.finish()

    def detach(self) -> None:
        """Stop the job, or log that it continues without this process."""
        self.jobs.release(self.job)

    def _follow(self, job: str, from_start: bool) -> None:
        """Print the job's log until the run is done or the job is over.

        Raises:
            UserError: The run is not done, and no other job should continue it.
        """
        log_reader = LogTail(self.jobs.log_of(job), from_start)
        pause_s = FIRST_PAUSE_S
        while True:
            state = self.jobs.look_up(job)
            done = run_state.is_done(self.run, self.key)
            for line in log_reader.new_lines():
                sys.stderr.write(line + "\n")
            if done:
                return
            self._raise_failure(job)
            if state is not None:
                self._report(state)
                if state.is_over:
                    break
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.3, LONGEST_PAUSE_S)
        if not self._finished_late(job):
            self._check_resubmission(state)

    def _finished_late(self, job: str) -> bool:
        """Return whether `done.json` appears within `SETTLE_S` of the job's end.

        Raises:
            UserError: The job recorded a failure instead.
        """
        until = time.monotonic() + (SETTLE_S if self.jobs.launcher == "slurm" else 0)
        while True:
            if run_state.is_done(self.run, self.key):
                return True
            self._raise_failure(job)
            if time.monotonic() > until or self._unfit_for(job):
                return False
            time.sleep(FIRST_PAUSE_S)

    def _report(self, state: QueuedJob) -> None:
        """Log each state of the job once until it runs, because Slurm alternates between reasons to wait."""
        if (words := state.in_words) not in self.reported:
            log.info("job %s %s", state.job, words)
        self.reported = {words} if state.state == "RUNNING" else self.reported | {words}

    def _raise_failure(self, job: str) -> None:
        """Raise a UserError if the job recorded a failure."""
        failure = run_state.read_failure(self.run, self.key)
        if failure is None:
            return
        more = [failure.traceback.rstrip(), self._log_tail(job)] if failure.traceback and self.jobs.log_of(job) else []
        raise UserError("\n".join([f"{self.run}: job {job} failed on {failure.node}: {failure.error}", *more]))

    def _check_resubmission(self, state: QueuedJob) -> None:
        """Check that another job may continue the run after one that ended without a result.

        Raises:
            UserError: No other job should start.
        """
        if self._left_unfit_node(state):
            return
        step = run_state.newest_checkpoint(self.run)
        outcomes = [line.outcome for line in run_state.read_starts(self.run) if line.job == state.job]
        if outcomes and outcomes[-1] == "taken over":
            raise UserError(
                f"{self.run}: another job or process has taken this run over from job {state.job}; wait for it"
            )
        if state.state == "CANCELLED":
            raise UserError(
                f"{self.run}: job {state.job} was cancelled; the same command resumes from step {step} or later"
            )
        log_tail = self._log_tail(state.job)
        if state.state == "OUT_OF_MEMORY" or OOM_KILLED.search(log_tail):
            raise UserError(
                f"{self.run}: job {state.job} ran out of memory; raise mem_mb in the scale file, or the "
                "memory in slurm/site.yaml if it names any\n"
                f"{log_tail}"
            )
        how = f"{state.state.lower()} {state.reason}"
        self.deaths = 1 if step > self.reached else self.deaths + 1
        self.reached = step
        if self.deaths >= DEATHS_WITHOUT_PROGRESS:
            raise UserError(
                f"{self.run}: {self.deaths} jobs in a row died at step {step}, the last one {state.job} "
                f"({how})\n{log_tail}"
            )
        log.warning("job %s died (%s) after step %d; submitting another", state.job, how, step)

    def _left_unfit_node(self, state: QueuedJob) -> bool:
        """Return whether the job ended because its node is unfit.

        The job recorded it, or failed without being able to open its log.

        Raises:
            UserError: No other node is left to try.
        """
        path = self.jobs.log_of(state.job)
        if path is not None and not is_listed(path) and state.state == "FAILED" and state.nodes:
            run_state.record_unfit_node(self.run, state.nodes, "a job could not open its log", state.job)
        unfit, here = run_state.unfit_nodes(self.run), self._unfit_for(state.job)
        if here and self.jobs.launcher != "slurm":
            raise UserError(f"{self.run}: this machine failed its check: {here[0].reason}; repair it or use another")
        for node in here:
            log.warning("node %s is unfit (%s): excluded; submitting job %s again", node.node, node.reason, state.job)
        self.unfit += bool(here)
        if here and max(len(unfit), self.unfit) >= UNFIT_NODES:
            named = "; ".join(f"{node.node}: {node.reason}" for node in unfit)
            raise UserError(f"{self.run}: no fit node found ({named})")
        return bool(here)

    def _unfit_for(self, job: str) -> list[UnfitNode]:
        return [node for node in run_state.unfit_nodes(self.run) if node.job == job]

    def _log_tail(self, job: str) -> str:
        path = self.jobs.log_of(job)
        return f"last lines of {path or 'its log'}:\n{last_lines(path, 20)}"


BACKLOG_BYTES = 4096  # printed of the log when a running job is adopted


class LogTail:
    """Reader of the complete lines that were added to a log since the last call.

    Args:
        path: The log, which may not exist yet; None if there is none.
        from_start: False skips the existing lines but the last.
    """

    def __init__(self, path: Path | None, from_start: bool):
        self.path = path
        self.position = 0
        if path is not None and not from_start and is_listed(path):
            self.position = max(0, path.stat().st_size - BACKLOG_BYTES)

    def new_lines(self) -> Iterator[str]:
        """Yield the complete lines that were added since the last call; a later call yields what a disk withholds."""
        added = b""
        with contextlib.suppress(OSError):
            if self.path is not None and is_listed(self.path):
                with open(self.path, "rb") as handle:
                    handle.seek(self.position)
                    added = handle.read()
        whole, newline, _ = added.rpartition(b"\n")
        self.position += len(whole) + len(newline)
        for line in whole.split(b"\n") if newline else ():
            yield line.decode(errors="replace")


def is_listed(path: Path) -> bool:
    """Return whether `path` exists. Its folder is listed, because NFS may hide a fresh file from another look-up."""
    try:
        return path.name in os.listdir(path.parent)
    except FileNotFoundError:
        return False


def last_lines(path: Path | None, number: int) -> str:
    """Return the last `number` of lines of the log `path` for an error message; without a path it is above."""
    if path is None:
        return "(the log is above)"
    if not is_listed(path):
        return "(no log was written)"
    lines = tail(path, 100 * number).decode(errors="replace").rstrip("\n").split("\n")
    return "\n".join(lines[-number:])

"""Waiting for a run to end, and the one place that decides whether a job that ended without an end is started again.

Started again: jobs that the cluster stopped (time limit, preemption without requeue, lost node) or that died without a
word (kill -9), as long as they get further, and jobs on a node that is unfit, on another node. Not started again:
jobs that failed by their own fault, that were cancelled, or that need more memory.
"""

import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from pipeline.cluster.markers import (
    is_done,
    newest_checkpoint,
    read_failure,
    read_starts,
    unfit_nodes,
    write_unfit_node,
)
from pipeline.cluster.queue import QueuedJob
from pipeline.core.errors import UserError
from pipeline.core.files import tail
from pipeline.core.records.jobs import UnfitNode

log = logging.getLogger(__name__)

DEATHS_WITHOUT_PROGRESS = 3
UNFIT_NODES = 5
FIRST_LOOK_S, LONGEST_LOOK_S = 0.2, 5.0  # between two looks at the run folder
SETTLE_S = 10.0  # for the last files of an ended job to appear over a network file system


class Jobs(Protocol):
    """The jobs of one run in one place (Slurm, or this machine)."""

    launcher: str

    def adopt(self) -> str | None: ...
    def submit(self) -> str: ...
    def look_up(self, job: str) -> QueuedJob | None: ...
    def log_of(self, job: str) -> Path | None: ...
    def release(self, job: str) -> None: ...
    def finish(self) -> None: ...


class Waiter:
    """Waits for one run, through all the jobs it takes."""

    def __init__(self, run: Path, key: str, jobs: Jobs):
        self.run, self.key, self.jobs = run, key, jobs
        self.job: str | None = None
        self.reported: set[str] = set()
        self.deaths = 0
        self.unfit = 0
        self.reached = newest_checkpoint(run)

    def wait(self) -> None:
        """Return when `done.json` carries the run's key.

        Raises:
            UserError: the job failed, was cancelled, or dies again and again.
        """
        (self.run / "failed.json").unlink(missing_ok=True)  # we were asked to try again
        self.job = self.jobs.adopt()
        adopted = self.job is not None
        while not is_done(self.run, self.key):
            if self.job is None:
                self.job = self.jobs.submit()
            self._follow(self.job, from_start=not adopted)
            if not is_done(self.run, self.key):
                self.job, adopted = None, False
        if self.job:
            self.jobs.finish()

    def detach(self) -> None:
        """Say what goes on without this process."""
        if self.job is None:
            log.warning("%s: nothing was submitted", self.run)
            return
        self.jobs.release(self.job)

    def _follow(self, job: str, from_start: bool) -> None:
        """Pass the job's log on until the run is done or the job over; return if another job is to go on."""
        tail = LogTail(self.jobs.log_of(job), from_start)
        pause_s = FIRST_LOOK_S
        while True:
            state = self.jobs.look_up(job)
            done = is_done(self.run, self.key)
            for line in tail.new_lines():
                sys.stderr.write(line + "\n")
            if done:
                return
            self._raise_failure(job)
            if state is not None:
                self._report(state)
                if state.is_over:
                    break
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.3, LONGEST_LOOK_S)
        if not self._settled(job):
            self._check_resubmission(state)

    def _settled(self, job: str) -> bool:
        """Whether `done.json` came after all (raises what failed.json says)."""
        until = time.monotonic() + (SETTLE_S if self.jobs.launcher == "slurm" else 0)
        while True:
            if is_done(self.run, self.key):
                return True
            self._raise_failure(job)
            if time.monotonic() > until or self._unfit_for(job):
                return False
            time.sleep(FIRST_LOOK_S)

    def _report(self, state: QueuedJob) -> None:
        """Each of Slurm's words once, until it runs: reasons to wait come and go by turns."""
        if (words := state.in_words) not in self.reported:
            log.info("job %s %s", state.job, words)
        self.reported = {words} if state.state == "RUNNING" else self.reported | {words}

    def _raise_failure(self, job: str) -> None:
        """Raise UserError with what the job itself says of its failure."""
        failure = read_failure(self.run, self.key)
        if failure is None:
            return
        more = [failure.traceback.rstrip(), self._log_tail(job)] if failure.traceback and self.jobs.log_of(job) else []
        raise UserError("\n".join([f"{self.run}: job {job} failed on {failure.node}: {failure.error}", *more]))

    def _check_resubmission(self, state: QueuedJob) -> None:
        """Return if another job shall go on where this one ended without a word; raise UserError if not."""
        if self._left_unfit_node(state):
            return
        step = newest_checkpoint(self.run)
        outcomes = [line.outcome for line in read_starts(self.run) if line.job == state.job]
        if outcomes and outcomes[-1] == "taken over":
            raise UserError(f"{self.run}: another job or process has taken this run over from job {state.job}")
        if state.state == "CANCELLED":
            raise UserError(
                f"{self.run}: job {state.job} was cancelled; the same command goes on from step {step} or later"
            )
        if state.state == "OUT_OF_MEMORY":
            raise UserError(
                f"{self.run}: job {state.job} ran out of memory; give it more mem_mb\n{self._log_tail(state.job)}"
            )
        how = f"{state.state.lower()} {state.reason}"
        self.deaths = 1 if step > self.reached else self.deaths + 1
        self.reached = step
        if self.deaths >= DEATHS_WITHOUT_PROGRESS:
            raise UserError(
                f"{self.run}: {self.deaths} jobs in a row died at step {step}, the last one {state.job} "
                f"({how})\n{self._log_tail(state.job)}"
            )
        log.warning("job %s died (%s) after step %d; another goes on", state.job, how, step)

    def _left_unfit_node(self, state: QueuedJob) -> bool:
        """Whether the job ended since its node is unfit, by its own word or because it could not even open its log."""
        path = self.jobs.log_of(state.job)
        if path is not None and not path.exists() and state.state == "FAILED" and state.nodes:
            write_unfit_node(self.run, state.nodes, "a job could not open its log", state.job)
        unfit, here = unfit_nodes(self.run), self._unfit_for(state.job)
        if here and self.jobs.launcher != "slurm":
            raise UserError(f"{self.run}: this machine is unfit, and without Slurm there is no other: {here[0].reason}")
        for marker in here:
            log.warning("node %s is unfit (%s): excluded, job %s goes elsewhere", marker.node, marker.reason, state.job)
        self.unfit += bool(here)
        if here and max(len(unfit), self.unfit) >= UNFIT_NODES:
            named = "; ".join(f"{marker.node}: {marker.reason}" for marker in unfit)
            raise UserError(f"{self.run}: no fit node found ({named})")
        return bool(here)

    def _unfit_for(self, job: str) -> list[UnfitNode]:
        return [marker for marker in unfit_nodes(self.run) if marker.job == job]

    def _log_tail(self, job: str) -> str:
        path = self.jobs.log_of(job)
        return f"last lines of {path or 'its log'}:\n{last_lines(path, 20)}"


BACKLOG_BYTES = 4096  # of a job that was running before we came


class LogTail:
    """Reads what was added to a log since it last looked, whole lines only.

    Args:
        path: the log; may not exist yet. None: there is none, nothing is ever new.
        from_start: False skips all but the last lines of what is there already.
    """

    def __init__(self, path: Path | None, from_start: bool):
        self.path = path
        self.position = 0
        if path is not None and not from_start and path.exists():
            self.position = max(0, path.stat().st_size - BACKLOG_BYTES)

    def new_lines(self) -> Iterator[str]:
        if self.path is None or not self.path.exists():
            return
        with open(self.path, "rb") as handle:
            handle.seek(self.position)
            added = handle.read()
        whole, newline, _ = added.rpartition(b"\n")
        self.position += len(whole) + len(newline)
        for line in whole.split(b"\n") if newline else ():
            yield line.decode(errors="replace")


def last_lines(path: Path | None, number: int) -> str:
    """The last lines of a log, for an error message; says so when there are none."""
    if path is None:
        return "(the log is above)"
    if not path.exists():
        return "(no log was written)"
    lines = tail(path, 100 * number).decode(errors="replace").rstrip("\n").split("\n")
    return "\n".join(lines[-number:])

"""Ownership of a run folder, so that at most one process trains a run, and requests to stop.

Slurm may start a job twice: it gives up a silent node and starts the job elsewhere while the old process still works.
So the newest process claims the run (in `state.jsonl`), then waits for the lock (`run.lock`). The previous owner reads
the last claim every few seconds. When it lost the run, it sends itself SIGTERM, saves a checkpoint and exits, which
frees the lock. The kernel or the file system holds the lock, so it vanishes with its process.
"""

import contextlib
import logging
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from pipeline.core.files import acquire_lock
from pipeline.core.layout import LOCK_FILE
from pipeline.core.records.jobs import RunClaim, last_event, read_events, record_event

log = logging.getLogger(__name__)

CHECK_EVERY_S = 2.0
LOG_EVERY_S = 60.0
EXIT_TO_BE_CONTINUED = 75  # EX_TEMPFAIL: run the same command again


class TakenOver(Exception):
    """Another process claimed the run; this one must stop."""


class Ownership:
    """A claim on a run folder by this process, on behalf of `job`."""

    def __init__(self, run: Path, job: str):
        self.run = run
        self.claim = RunClaim(host=socket.gethostname(), pid=os.getpid(), job=job, token=uuid.uuid4().hex)
        self.position = 0
        """End of our claim in the file, in bytes."""

    def claim_run(self) -> None:
        """Claim the run."""
        self.position = record_event(self.run, self.claim)

    @property
    def is_lost(self) -> bool:
        """Return whether another process claimed the run after us.

        An unreadable claim does not count. If a disk altered our claim, those after its position count.
        """
        claims = [event for event in read_events(self.run) if isinstance(event, RunClaim)]
        if any(claim.token == self.claim.token for claim in claims):
            return claims[-1].token != self.claim.token
        return any(isinstance(event, RunClaim) for event in read_events(self.run, self.position))

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Claim the run, wait until its previous owner has stopped, and watch the claim until the block ends.

        Raises:
            TakenOver: Another process claimed the run while we waited.
        """
        previous = last_event(RunClaim, self.run)
        self.claim_run()
        with open(self.run / LOCK_FILE, "a") as lock:
            self._wait_for(lock.fileno(), previous)
            over = threading.Event()
            watch = threading.Thread(target=self._watch, args=(over,), daemon=True)
            watch.start()
            try:
                yield
            finally:
                over.set()
                watch.join()

    def _wait_for(self, lock: int, previous: RunClaim | None) -> None:
        logged, advice = 0.0, ""
        while not acquire_lock(lock, blocking=False):
            if self.is_lost:
                raise TakenOver
            if time.monotonic() - logged > LOG_EVERY_S:
                logged = time.monotonic()
                log.warning("waiting for %s to save its progress and stop%s", owner_name(previous), advice)
                advice = f"; if it does not, end it; only if its machine is gone, remove {self.run / LOCK_FILE}"
            time.sleep(0.5)

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(CHECK_EVERY_S):
            if self.is_lost:
                log.warning("another process claimed %s: stopping", self.run)
                os.kill(os.getpid(), signal.SIGTERM)
                return


def owner_name(claim: RunClaim | None) -> str:
    """Describe the process that holds a claim."""
    if claim is None:
        return "the run's owner"
    return f"process {claim.pid} on {claim.host} (job {claim.job})"


class StopRequest:
    """Signal handler that only records a request to stop; the trainer acts on it between two steps.

    SIGTERM and SIGUSR2 announce a preemption or a time limit, SIGHUP a closed terminal, SIGINT is Ctrl-C; a second
    Ctrl-C stops at once. While entered, `signal` holds the number of the signal that came.
    """

    def __init__(self):
        self.signal: int | None = None
        self._previous = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGUSR2, signal.SIGINT, signal.SIGHUP):
                if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` has it ignored
                    self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, as in shells, else 75 (run the same command again)."""
        return 128 + signal.SIGINT if self.signal == signal.SIGINT else EXIT_TO_BE_CONTINUED

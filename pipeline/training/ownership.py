"""At most one process works on a run, whatever Slurm, a killed driver or a second terminal do.

Slurm itself starts a job twice at times: a node that falls silent is given up and its job starts elsewhere, while the
old process works on. So whoever starts first claims the run (`owner.json`), then waits for the lock (`run.lock`).
The former owner looks at the claim every few seconds, saves a checkpoint, stops and thereby frees the lock.
The lock is the kernel's (or the file system's) and vanishes with its process.
"""

import contextlib
import fcntl
import logging
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.core.records.jobs import Claim
from pipeline.core.records.record import read_note

log = logging.getLogger(__name__)

CHECK_EVERY_S = 2.0
SAY_EVERY_S = 60.0


class TakenOver(Exception):
    """Another process claimed the run; this one is to stop without a further word."""


class Ownership:
    """A claim on a run folder by this process."""

    def __init__(self, run: Path, job: str):
        self.run = run
        self.claim = Claim(
            host=socket.gethostname(), pid=os.getpid(), job=job, time=time.time(), token=uuid.uuid4().hex
        )

    @property
    def is_lost(self) -> bool:
        """Whether somebody else claimed the run after us. A claim that can't be read is still ours."""
        claim = read_note(Claim, self.run / "owner.json")
        return claim is not None and claim.token != self.claim.token

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Claim the run, wait until its former owner stopped, and keep watch until the block ends.

        Raises:
            TakenOver: somebody else claimed it while we waited.
        """
        former = read_note(Claim, self.run / "owner.json")
        self.claim.write(self.run / "owner.json")
        with open(self.run / "run.lock", "a") as lock:
            self._wait_for(lock.fileno(), former)
            over = threading.Event()
            watch = threading.Thread(target=self._watch, args=(over,), daemon=True)
            watch.start()
            try:
                yield
            finally:
                over.set()
                watch.join()

    def _wait_for(self, lock: int, former: Claim | None) -> None:
        said, otherwise = 0.0, ""
        while not locked(lock):
            if self.is_lost:
                raise TakenOver
            if time.monotonic() - said > SAY_EVERY_S:
                said = time.monotonic()
                log.warning("waiting for %s to save what it did and stop%s", describe(former), otherwise)
                otherwise = f"; if it doesn't, end it; only where its machine is gone, remove {self.run / 'run.lock'}"
            time.sleep(0.5)

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(CHECK_EVERY_S):
            if self.is_lost:
                log.warning("another process claimed %s: stopping", self.run)
                os.kill(os.getpid(), signal.SIGTERM)
                return


def locked(descriptor: int) -> bool:
    """Try to take an exclusive lock on an open file.

    Raises:
        UserError: the file system has no locks, so that nothing would keep two jobs apart.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise UserError(
            f"the file system of the run folder has no file locks ({error.strerror}); "
            "put `work:` on one that has (NFSv4, Lustre mounted with -o flock, GPFS, local disk)"
        ) from error
    return True


def describe(claim: Claim | None) -> str:
    if claim is None:
        return "the run's owner"
    return f"process {claim.pid} on {claim.host} (job {claim.job})"

"""A few seconds' check that this node can do the job, so that a broken one does not eat every job.

A node is broken when it answers wrong, or not at all for ten minutes. One that is slow is said to be and used: on a
busy network file system a first import takes minutes, and an fsync many seconds. A full disk is no node's fault.
"""

import contextlib
import errno
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.core.errors import UserError

log = logging.getLogger(__name__)

SLOW_S, BROKEN_S = 20.0, 600.0
FULL = (errno.ENOSPC, errno.EDQUOT)


class UnfitNode(Exception):
    """This node can't do the job; the message says why."""


def check_node(run: Path, gpu: int | None, report: Callable[[str], None]) -> None:
    """Check that the run folder is writable and that GPU number `gpu` computes (None: no GPU is needed).

    Args:
        run: the run folder.
        gpu: local index of this process' device.
        report: called with a reason, and expected to end the process, when a check hangs.
    Raises:
        UnfitNode: a check failed.
        UserError: the disk of the run folder is full.
    """
    started = time.monotonic()
    with deadline(str(run), report):
        check_folder(run)
    if gpu is not None:
        with deadline(f"GPU {gpu}", report):
            check_gpu(gpu)
    log.info("node %s is fit (checked in %.1f s)", os.uname().nodename, time.monotonic() - started)


@contextlib.contextmanager
def deadline(what: str, report: Callable[[str], None]) -> Iterator[None]:
    """Say when the block is slow, and `report` when it hangs: from another thread, as a hung mount can't be
    interrupted.
    """
    timers = [
        threading.Timer(SLOW_S, log.warning, (f"{what} is slow: no answer for {SLOW_S:g} s; still waiting",)),
        threading.Timer(BROKEN_S, report, (f"{what} does not answer within {BROKEN_S:g} s",)),
    ]
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()


def check_folder(folder: Path) -> None:
    """Write, sync, read back and remove a small file. Raises UnfitNode; UserError where the disk is full."""
    content = uuid.uuid4().bytes
    path = folder / f".node-check.{uuid.uuid4().hex}"
    try:
        with open(path, "wb") as handle:
            handle.write(content)
            os.fsync(handle.fileno())
        if path.read_bytes() != content:
            raise UnfitNode(f"{folder} gives back other bytes than were written")
        path.unlink()
    except OSError as error:
        if error.errno in FULL:
            raise UserError(f"{folder}: {error.strerror}; free some, then the same command goes on") from error
        raise UnfitNode(f"{folder} is not writable: {error.strerror}") from error


def check_gpu(index: int) -> None:
    """One small product on the device, whose result is known."""
    import torch  # here only: a job without GPUs need not load it for a check

    if not torch.cuda.is_available():
        raise UnfitNode("no GPU is visible though one was asked for")
    if index >= torch.cuda.device_count():
        raise UnfitNode(f"GPU {index} was asked for, {torch.cuda.device_count()} are visible")
    try:
        ones = torch.ones(256, 256, device=f"cuda:{index}")
        product = ones @ ones
        right = bool((product == 256).all())
    except RuntimeError as error:
        raise UnfitNode(f"GPU {index}: {error}") from error
    if not right:
        raise UnfitNode(f"GPU {index} computes wrong products")

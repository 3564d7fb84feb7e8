"""A check of a few seconds that this node can run the job, so that a broken one does not eat every job.

A node is broken if it gives wrong answers, or none for ten minutes. A slow node is logged and used, because a first
import takes minutes on a busy network file system. A full disk is not the node's fault.
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
    """This node cannot run the job; the message says why."""


def check_node(run: Path, gpu: int | None, report: Callable[[str], None]) -> None:
    """Check that the run folder is writable and that a GPU computes.

    Args:
        run: The run folder.
        gpu: Local index of this process's GPU; None if the job needs none.
        report: Called with a reason, and expected to end the process, when a check hangs.

    Raises:
        UnfitNode: A check failed.
        UserError: The disk of the run folder is full.
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
    """Log when `what` the block checks is slow, and `report` the reason when it hangs for `BROKEN_S` seconds.

    Both happen in another thread, because a hung mount cannot be interrupted.
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
    """Write, sync, read back and remove a small file.

    Raises:
        UnfitNode: The file is not what was written, or cannot be written.
        UserError: The disk is full.
    """
    content = uuid.uuid4().bytes
    path = folder / f".node-check.{uuid.uuid4().hex}"
    try:
        with contextlib.suppress(InterruptedError), open(path, "wb") as handle:  # of a `close` that succeeded
            handle.write(content)
            os.fsync(handle.fileno())
        if path.read_bytes() != content:
            raise UnfitNode(f"{folder} returns other bytes than were written")
        path.unlink()
    except OSError as error:
        if error.errno in FULL:
            raise UserError(f"{folder}: {error.strerror}; free some space, then run the same command again") from error
        raise UnfitNode(f"{folder} is not writable: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):  # the error of the disk is already reported
            path.unlink(missing_ok=True)


def check_gpu(index: int) -> None:
    """Compute a small matrix multiplication with a known result on the GPU.

    Raises:
        UnfitNode: There is no such GPU, or its result is wrong.
    """
    import torch  # imported late: jobs without GPUs do not need it

    if not torch.cuda.is_available():
        raise UnfitNode("no GPU is visible, but the job requested one")
    if index >= torch.cuda.device_count():
        raise UnfitNode(f"the job requested GPU {index}, but only {torch.cuda.device_count()} are visible")
    try:
        ones = torch.ones(256, 256, device=f"cuda:{index}")
        product = ones @ ones
        right = bool((product == 256).all())
    except RuntimeError as error:
        raise UnfitNode(f"GPU {index}: {error}") from error
    if not right:
        raise UnfitNode(f"GPU {index} computes wrong results")

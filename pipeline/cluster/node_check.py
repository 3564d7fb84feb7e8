"""A few seconds' check that this node can do the job, so that a broken one does not eat every job."""

import contextlib
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

log = logging.getLogger(__name__)

FOLDER_CHECK_S = 5.0
GPU_CHECK_S = 60.0  # torch may have to be read over a cold network file system first


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
    """
    started = time.monotonic()
    with deadline(FOLDER_CHECK_S, f"{run} does not answer within {FOLDER_CHECK_S:.0f} s", report):
        check_folder(run)
    if gpu is not None:
        with deadline(GPU_CHECK_S, f"GPU {gpu} does not answer within {GPU_CHECK_S:.0f} s", report):
            check_gpu(gpu)
    log.info("node %s is fit (checked in %.1f s)", os.uname().nodename, time.monotonic() - started)


@contextlib.contextmanager
def deadline(seconds: float, reason: str, report: Callable[[str], None]) -> Iterator[None]:
    """Call `report(reason)` from another thread when the block takes longer: a hung mount can't be interrupted."""
    timer = threading.Timer(seconds, report, args=(reason,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def check_folder(folder: Path) -> None:
    """Write, sync, read back and remove a small file."""
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

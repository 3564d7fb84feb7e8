"""GPUs of a machine without Slurm, each lent to one job of this user at a time, or to as many as may share it."""

import logging
import os
import re
import shutil
import subprocess
import time
from itertools import product
from pathlib import Path

from filelock import lock_descriptor

from pipeline.core.disk import own_folder

log = logging.getLogger(__name__)
ACQUIRED: dict[str, int] = {}
"""Descriptors of locked files, by GPU; the locks end with this process."""


def acquire_gpus(count: int, jobs_per_gpu: int = 1) -> None:
    """Block until `count` GPUs are free, then restrict `CUDA_VISIBLE_DEVICES` to them.

    If the machine has fewer GPUs, nothing is restricted, and the job itself reports it.

    Args:
        count: GPUs that the job needs, each a different one.
        jobs_per_gpu: Jobs that may share a GPU; its jobs are only counted, so its memory has to be large enough.
    """
    cards = visible_gpus()
    if not 0 < count <= len(cards) or ACQUIRED:
        return
    with open(lock_file("queue"), "a") as queue:  # one waits at a time, so no two jobs wait for each other's GPUs
        if not lock_descriptor(queue.fileno(), blocking=False):
            log.info("waiting for GPUs: another job is first in the queue")
            lock_descriptor(queue.fileno())
        acquire_free_gpus(cards, count, jobs_per_gpu)
        if len(ACQUIRED) < count:
            log.info("waiting for GPUs: %d of %d are free, %d are needed", len(ACQUIRED), len(cards), count)
        while len(ACQUIRED) < count:
            time.sleep(1)
            acquire_free_gpus(cards, count, jobs_per_gpu)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(card for card in cards if card in ACQUIRED)


def acquire_free_gpus(cards: list[str], count: int, jobs_per_gpu: int) -> None:
    """Lock places on free GPUs until `count` are acquired; a GPU gets a second job when all have a first.

    Args:
        cards: All GPUs of this machine, as `visible_gpus` names them.
        count: GPUs to hold in the end, those acquired before included.
        jobs_per_gpu: Jobs that may share a GPU.
    """
    for place, card in product(range(jobs_per_gpu), cards):
        if card in ACQUIRED or len(ACQUIRED) == count:
            continue
        name = f"{card}-{place}" if place else card
        descriptor = os.open(lock_file(name), os.O_CREAT | os.O_WRONLY, 0o600)
        if lock_descriptor(descriptor, blocking=False):
            ACQUIRED[card] = descriptor
        else:
            os.close(descriptor)


def lock_file(name: str) -> Path:
    """Return the lock file of a place on a GPU, or of the queue; a surrounding Slurm job has names of its own."""
    return own_folder() / f"gpu-{os.environ.get('SLURM_JOB_ID', '')}-{name}.lock"  # GPU names may differ by job


def visible_gpus() -> list[str]:
    """Return the GPUs as CUDA_VISIBLE_DEVICES names them; of a divided GPU (MIG), its instances."""
    if (named := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return list(dict.fromkeys(card for card in named.split(",") if card and card != "-1"))
    listed = [shutil.which("nvidia-smi") or "true", "-L"]  # `true` prints nothing if there is no driver
    said = subprocess.run(listed, capture_output=True, text=True, check=False).stdout
    cards = [""]
    for card in re.findall(r"UUID: ((?:GPU|MIG)-[^)\s]+)", said):
        if card.startswith("MIG") and cards[-1].startswith("GPU"):
            cards.pop()  # a divided GPU, whose instances follow
        cards.append(card)
    return cards[1:]

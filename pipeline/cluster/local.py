"""Jobs as processes of this machine, with the same wrapper and state files as on Slurm.

A GPU is lent to one job of this user at a time, or to as many as may share it.
"""

import contextlib
import json
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cache
from itertools import product
from pathlib import Path

from filelock import lock_descriptor

from pipeline.cluster.job_process import Exit, JobOrder
from pipeline.cluster.queue import QueuedJob
from pipeline.core.disk import own_folder
from pipeline.core.gpus import named_gpus
from pipeline.core.provenance import ROOT
from pipeline.core.records.jobs import Submission, record_event

log = logging.getLogger(__name__)
ACQUIRED: dict[str, list[int]] = {}
"""Descriptors of locked files, by GPU; the locks end with this process."""
LISTED_WITHIN_S = 60.0  # a driver that is not loaded takes seconds


def acquire_gpus(count: int, jobs_per_gpu: int, alone: bool = False) -> None:
    """Block until `count` GPUs are free, then restrict `CUDA_VISIBLE_DEVICES` to them.

    If the machine has fewer GPUs, nothing is restricted, and the job itself reports it.

    Args:
        count: GPUs that the job needs, each a different one.
        jobs_per_gpu: Jobs that may share a GPU; its jobs are only counted, so its memory has to be large enough.
        alone: Share the GPUs with no other job.
    """
    visible = visible_gpus()
    if not 0 < count <= len(visible) or ACQUIRED:
        return
    gpus = lock_names(visible)
    with open(lock_file("queue"), "a") as queue:  # one waits at a time, so no two jobs wait for each other's GPUs
        if not lock_descriptor(queue.fileno(), blocking=False):
            log.info("waiting for GPUs: another job is first in the queue")
            lock_descriptor(queue.fileno())
        acquire_free_gpus(gpus, count, jobs_per_gpu, alone)
        if len(ACQUIRED) < count:
            log.info("waiting for GPUs: %d of %d are free, %d are needed", len(ACQUIRED), len(gpus), count)
        while len(ACQUIRED) < count:
            time.sleep(1)
            acquire_free_gpus(gpus, count, jobs_per_gpu, alone)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpu for gpu in gpus if gpu in ACQUIRED)


def acquire_free_gpus(gpus: Mapping[str, str], count: int, jobs_per_gpu: int, alone: bool) -> None:
    """Lock slots on free `gpus` until `count` are acquired in all; a GPU gets a second job when all have one.

    `gpus` maps each name to that of its locks. A GPU has slots for `jobs_per_gpu`; `alone` locks all of them.
    """
    choices = [range(jobs_per_gpu)] if alone else [range(slot, slot + 1) for slot in range(jobs_per_gpu)]
    for slots, gpu in product(choices, gpus):
        if gpu not in ACQUIRED and len(ACQUIRED) < count and (locked := lock_slots(gpus[gpu], slots)):
            ACQUIRED[gpu] = locked


def lock_slots(gpu: str, slots: Iterable[int]) -> list[int]:
    """Lock `slots` of a `gpu` and return the descriptors, or lock none if another job has one of them."""
    locked = []
    with contextlib.ExitStack() as closed_on_failure:
        for slot in slots:
            name = f"{gpu}-{slot}" if slot else gpu
            descriptor = os.open(lock_file(name), os.O_CREAT | os.O_WRONLY, 0o600)
            closed_on_failure.callback(os.close, descriptor)
            if not lock_descriptor(descriptor, blocking=False):
                return []
            locked.append(descriptor)
        closed_on_failure.pop_all()
    return locked


def lock_file(name: str) -> Path:
    """Return the lock file of a slot on a GPU, or of the queue; a surrounding Slurm job has its own files."""
    safe = name.replace("/", "_")  # older drivers name an instance of MIG by MIG-GPU-UUID/1/0
    return own_folder() / f"gpu-{os.environ.get('SLURM_JOB_ID', '')}-{safe}.lock"  # GPU names may differ by job


def lock_names(gpus: list[str]) -> dict[str, str]:
    """Return the names of `gpus` in locks: UUIDs in place of numbers, as another job may name a GPU by its UUID.

    The driver counts GPUs as CUDA does, unless they are of several models.
    """
    listed = listed_gpus()
    whole = [] if any(gpu.startswith("MIG") for gpu in listed) else listed
    return {gpu: whole[int(gpu)] if gpu.isdecimal() and int(gpu) < len(whole) else gpu for gpu in gpus}


def visible_gpus() -> list[str]:
    """Return the GPUs as CUDA_VISIBLE_DEVICES names them, else all."""
    named = named_gpus()
    return listed_gpus() if named is None else named


def listed_gpus() -> list[str]:
    """Return the UUIDs of all GPUs, of a divided GPU (MIG) those of its instances; none if the driver hangs."""
    gpus = [""]
    for gpu in re.findall(r"UUID: ((?:GPU|MIG)-[^)\s]+)", driver_listing() or ""):
        if gpu.startswith("MIG") and gpus[-1].startswith("GPU"):
            gpus.pop()  # a divided GPU, whose instances follow
        gpus.append(gpu)
    return gpus[1:]


@cache
def driver_listing() -> str | None:
    """Return the output of `nvidia-smi -L`, which runs once; nothing without a driver, None if it hangs."""
    command = [shutil.which("nvidia-smi") or "true", "-L"]  # `true` prints nothing if there is no driver
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        return process.communicate(timeout=LISTED_WITHIN_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()  # without a wait for its end: a process that waits for the driver may outlive the signal
        log.warning("nvidia-smi -L: no answer within %g s; GPUs are used without counting them", LISTED_WITHIN_S)
        return None


STOP_WITHIN_S = 300.0


class LocalJobs:
    """The processes of one run, one per task.

    They have their own session, so Ctrl-C reaches only the launcher, which asks them to save and stop.
    """

    launcher = "local"

    def __init__(self, run: Path, order: JobOrder, tasks: int, cpus: int):
        self.run, self.order, self.tasks, self.cpus = run, order, tasks, cpus
        self.processes: list[subprocess.Popen] = []

    def adopt(self) -> str | None:
        """Return None: the next process that claims the run stops one that a killed launcher left behind."""
        return None

    def submit(self) -> str:
        """Start the processes, and return the first one's process id as the id of the job."""
        port = str(free_port())
        self.processes = []
        for rank in range(self.tasks):  # recorded one by one: a signal may come before the next starts
            self.processes.append(self._start(rank, port))
        job = str(self.processes[0].pid)
        order = self.order
        record = Submission(key=order.key, launcher=self.launcher, job=job, name="", code=order.code)
        record_event(self.run, record)
        return job

    def look_up(self, job: str) -> QueuedJob:
        """Return whether the processes run or how they ended; if one ended early, the others are ended.

        Only if one died are they killed: beside one that was asked to stop, the first may still save.
        """
        codes = [process.poll() for process in self.processes]
        if any(codes):
            self._end(signal.SIGTERM if {*codes} <= {None, Exit.DONE, Exit.STOPPED} else signal.SIGKILL)
            state, reason = ended_state(next(code for code in codes if code))
            return QueuedJob(job, state, reason, socket.gethostname())
        return QueuedJob(job, "RUNNING" if None in codes else "COMPLETED", nodes=socket.gethostname())

    def log_of(self, job: str) -> None:
        """Return None: the processes write to the launcher's stderr."""

    def finish(self) -> None:
        """Wait for the processes, which may decode the run that they trained."""
        for process in self.processes:
            process.wait()

    def release(self, job: str | None) -> None:
        """Ask the processes to save a checkpoint and stop, and wait for them."""
        if any(process.poll() is None for process in self.processes):
            log.warning("saving a checkpoint; run the same command again to resume from it")
            self._end(signal.SIGTERM)

    def _start(self, rank: int, port: str) -> subprocess.Popen:
        # A driver that is a Slurm job is not the job of its children.
        outer = os.environ.items()
        environment = {key: value for key, value in outer if not key.startswith(("SLURM_", "SUBMITIT_"))}
        environment |= {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self.tasks),
            "LOCAL_WORLD_SIZE": str(self.tasks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": str(self.cpus),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        }
        command = [sys.executable, "-m", "pipeline.cluster.job_process", json.dumps(asdict(self.order))]
        return subprocess.Popen(command, env=environment, start_new_session=True)

    def _end(self, number: int) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)
        until = time.monotonic() + STOP_WITHIN_S
        for process in self.processes:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()


def ended_state(code: int) -> tuple[str, str]:
    """Return a state and a reason like Slurm's for a nonzero exit code."""
    if code == Exit.STOPPED:
        return "CANCELLED", "asked to stop"
    return "FAILED", f"signal {-code}" if code < 0 else f"exit code {code}"


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

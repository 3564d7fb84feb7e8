"""Jobs as processes of this machine, with the same wrapper and state files as on Slurm."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from pipeline.cluster.job_process import Exit, JobOrder
from pipeline.cluster.queue import QueuedJob
from pipeline.core.provenance import ROOT
from pipeline.core.records.jobs import Submission, record_event

log = logging.getLogger(__name__)

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
        self.processes = [self._start(rank, port) for rank in range(self.tasks)]
        job = str(self.processes[0].pid)
        order = self.order
        record = Submission(key=order.key, launcher=self.launcher, job=job, name="", code=order.code)
        record_event(self.run, record)
        return job

    def look_up(self, job: str) -> QueuedJob:
        """Return whether the processes run or how they ended; if one died, the others are killed."""
        codes = [process.poll() for process in self.processes]
        if any(codes):
            self._end(signal.SIGKILL)
            state, reason = ended_state(next(code for code in codes if code))
            return QueuedJob(job, state, reason, socket.gethostname())
        return QueuedJob(job, "RUNNING" if None in codes else "COMPLETED", nodes=socket.gethostname())

    def log_of(self, job: str) -> None:
        """Return None: the processes write to the launcher's stderr."""

    def finish(self) -> None:
        """Wait for the processes, which may decode the run that they trained."""
        for process in self.processes:
            process.wait()

    def release(self, job: str) -> None:
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
        for process in self.processes:
            try:
                process.wait(STOP_WITHIN_S)
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

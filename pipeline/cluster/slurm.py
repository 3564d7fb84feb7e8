"""Jobs on Slurm: submitted through submitit, found again by id or by name, watched in the shared queue.

Slurm requeues a job under its id after a preemption, a time limit or a lost node, so that here it just waits again.
Neither submitit's result files nor accounting (sacct) are looked at: both are silent about too many ends.
"""

import hashlib
import logging
import os
import re
import shlex
import time
from pathlib import Path

from pipeline.cluster.job_process import JobOrder, run_job
from pipeline.cluster.markers import read_submission, unfit_nodes
from pipeline.cluster.queue import Queue, QueuedJob
from pipeline.cluster.resources import Resources
from pipeline.cluster.version import PROJECT
from pipeline.errors import UserError
from pipeline.records.jobs import Submission

log = logging.getLogger(__name__)

SUBMIT_TRIES = 7  # 5, 10, 20, … 320 s apart: ten minutes of a controller that does not answer
FIRST_DELAY_S = 5.0
# sbatch's words for what no second try can mend.
PERMANENT = (
    "invalid account",
    "invalid partition",
    "invalid qos",
    "invalid feature",
    "invalid constraint",
    "invalid generic resource",
    "invalid time limit",
    "unrecognized option",
    "requested node configuration is not available",
    "requested time limit is invalid",
    "more processors requested than permitted",
    "memory specification can not be satisfied",
    "node count specification invalid",
    "user's group not permitted",
    "invalid wckey",
    "invalid node name",
)


class SlurmJobs:
    """The jobs of one run on Slurm."""

    launcher = "slurm"

    def __init__(self, run: Path, order: JobOrder, resources: Resources, queue: Queue):
        self.run, self.order, self.resources, self.queue = run, order, resources, queue
        self.name = job_name(run, order.key)
        self.submitted = 0.0  # what the queue said before then is no news of our job

    def adopt(self) -> str | None:
        """The id of a job of this run that waits or works in Slurm, or None; asks Slurm when there may be one."""
        recorded = read_submission(self.run)
        known = recorded if recorded and recorded.launcher == self.launcher else None
        # Without a record a snapshot that is not quite fresh will do: nobody submitted here a moment ago.
        jobs = self._jobs_newer_than(known.time if known else time.time() - 4 * self.queue.interval_s)
        live = [job for job in jobs if not job.is_over]
        ours = [job for job in live if known and job.job == known.job and known.key == self.order.key]
        ours += [job for job in live if job.name == self.name]
        if not ours:
            return None
        job = ours[0]
        log.info(
            "adopted job %s (%s), which is %s; log: %s", job.job, self.name, job.state.lower(), self.log_of(job.job)
        )
        if not known or job.job != known.job:
            self._record(job.job)
        return job.job

    def submit(self) -> str:
        """Submit a job, again and again while Slurm does not answer, and return its id.

        Raises:
            UserError: sbatch refuses for good, or for longer than ten minutes.
        """
        for delay_s in delays(self.queue.interval_s):
            self._record(None)
            try:
                return self._accepted(self._sbatch())
            except RuntimeError as error:
                words = last_line(str(error))
            if any(phrase in words.lower() for phrase in PERMANENT):
                break
            log.warning("sbatch: %s; trying again in %.0f s", words, delay_s)
            time.sleep(delay_s)
            if job := self.adopt():  # a time-out may hide a success
                return job
        raise UserError(f"{self.run}: sbatch refuses the job: {words}; check slurm/profile.yaml{self._excluded()}")

    def look_up(self, job: str) -> QueuedJob | None:
        """What Slurm says of a job; None while it is silent."""
        return self.queue.look_up(job, self.submitted)

    def log_of(self, job: str) -> Path:
        """The job's own log, all its restarts in one file."""
        return self.run / "slurm" / job / f"{job}_0_log.out"

    def release(self, job: str) -> None:
        """A job goes on without its launcher."""
        what = "%s: job %s goes on without us; the same command waits for it again, `scancel %s` cancels it"
        log.warning(what, self.run, job, job)

    def _jobs_newer_than(self, moment: float) -> list[QueuedJob]:
        """Waits until Slurm answers, and as long as the limit on queries asks for."""
        while (jobs := self.queue.jobs(moment)) is None:
            time.sleep(min(1.0, self.queue.interval_s))
        return jobs

    def _record(self, job: str | None) -> None:
        self.submitted = time.time()
        order = self.order
        record = Submission(
            key=order.key, launcher=self.launcher, job=job, name=self.name, time=self.submitted, code=order.code
        )
        record.write(self.run / "job.json")

    def _sbatch(self) -> str:
        """One submission. Raises RuntimeError with sbatch's words when it fails."""
        import submitit  # here only: a launcher that adopts a job does without

        for leftover in (self.run / "slurm").glob("*.*"):  # of submissions that failed
            leftover.unlink()
        executor = submitit.SlurmExecutor(folder=self.run / "slurm" / "%j")
        executor.update_parameters(
            job_name=self.name,
            dependency="singleton",  # two jobs of one name never run at once
            setup=[
                f"export PYTHONPATH={shlex.quote(str(PROJECT))}:$PYTHONPATH",
                f"export OMP_NUM_THREADS={self.resources.cpus}",
            ],
            srun_args=["--kill-on-bad-exit=1"],
            stderr_to_stdout=True,
            exclude=",".join(marker.node for marker in unfit_nodes(self.run)) or None,
            **self.resources.as_submitit(),
        )
        configuration = {"SLURM_CONF": os.environ["SLURM_CONF"]} if "SLURM_CONF" in os.environ else {}
        # A driver that is a job itself must not pass its own SLURM_* on; which cluster it talks to is no part of them.
        with submitit.helpers.clean_env(), submitit.helpers.environment_variables(**configuration):
            return executor.submit(run_job, self.order).job_id

    def _excluded(self) -> str:
        return "".join(f"; {marker.node} is excluded as unfit: {marker.reason}" for marker in unfit_nodes(self.run))

    def _accepted(self, job: str) -> str:
        self._record(job)
        self.queue.quicken()
        log.info("submitted job %s (%s); log: %s", job, self.name, self.log_of(job))
        return job


def delays(interval_s: float) -> list[float]:
    """Seconds to wait after each failed submission, twice as long each time; shorter in step with a short interval."""
    scale = min(1.0, interval_s / 60)
    return [scale * FIRST_DELAY_S * 2**attempt for attempt in range(SUBMIT_TRIES)]


def job_name(run: Path, key: str) -> str:
    """A name that says which run it is, and is another for another folder or another spec."""
    folder = run.resolve()
    digest = hashlib.sha256(f"{folder} {key}".encode()).hexdigest()[:10]
    return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(folder.parts[1:][-4:])) + "-" + digest


def last_line(words: str) -> str:
    """The last line of sbatch's complaint that says something."""
    return next((line for line in reversed(words.strip().split("\n")) if line.strip()), "no reason given").strip()

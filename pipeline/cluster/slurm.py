"""Jobs on Slurm: submitted through submitit, found again by id or name, watched in the shared queue.

Slurm requeues a job under its id after a preemption, a time limit or a lost node, so the launcher just keeps waiting.
Neither submitit's result files nor accounting (sacct) are read, because both miss too many ends.
"""

import contextlib
import hashlib
import logging
import os
import re
import shlex
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from pipeline.cluster.job_process import JobOrder, run_job
from pipeline.cluster.queue import CLUSTER_VARIABLES, Queue, QueuedJob, Reason, find_reason
from pipeline.cluster.resources import Resources, parse_options
from pipeline.cluster.state import read_submission, unfit_nodes
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.core.records.jobs import Submission, record_event

log = logging.getLogger(__name__)

UNEXPLAINED_TRIES = 7  # after an unknown error; known temporary ones are retried without limit
FIRST_DELAY_S, LONGEST_DELAY_S = 5.0, 320.0  # between two tries, doubled each time
LEFTOVER = re.compile(r"\.submission_file_.*|[0-9a-f]{32}\.pkl")
"""Files that submitit leaves after failed submissions."""
LEFTOVER_AFTER_S = 3600.0  # younger ones may belong to another launcher that is submitting


def require_slurm() -> None:
    """Check that this machine can submit jobs and watch them; submitit asks for srun, too.

    Raises:
        UserError: A program is not installed.
    """
    for program in ("sbatch", "squeue", "srun"):
        if shutil.which(program) is None:
            raise UserError(f"no {program} on this machine; omit --profile slurm, or use a login node of Slurm")


class SlurmJobs:
    """The jobs of one run on Slurm.

    Raises:
        UserError: Slurm would write their logs elsewhere.
    """

    launcher = "slurm"

    def __init__(self, run: Path, order: JobOrder, resources: Resources, queue: Queue):
        if sign := next((sign for sign in "%\\" if sign in str(run.absolute())), None):
            raise UserError(
                f"{run.absolute()}: Slurm reads {sign} in the path of a log as a pattern; choose another `work:`, or "
                "move the project"
            )
        self.run, self.order, self.resources, self.queue = run, order, resources, queue
        self.name = job_name(run, order.key)
        self.submitted = 0.0  # monotonic clock; older snapshots of the queue do not show our job

    def adopt(self) -> str | None:
        """Return the id of a pending or running job of this run, or None."""
        recorded = read_submission(self.run)
        known = recorded if recorded and (recorded.launcher, recorded.key) == (self.launcher, self.order.key) else None
        asked = time.monotonic()
        # A recent snapshot proves that the job exists. Only a new one proves that a submitted job does not.
        moments = [max(0.0, asked - 4 * self.queue.interval_s), *([asked] if known else [])]
        ours: list[QueuedJob] = []
        while moments and not ours:
            live = [job for job in self._jobs_newer_than(moments.pop(0)) if not job.is_over]
            ours = [job for job in live if known and job.job == known.job]
            ours += [job for job in live if job.name == self.name]
        if not ours:
            return None
        job = ours[0]
        log.info("adopted job %s (%s), which %s; log: %s", job.job, self.name, job.in_words, self.log_of(job.job))
        if not known or job.job != known.job:
            self._record(job.job)
        return job.job

    def submit(self) -> str:
        """Return the id of a new job; retry while Slurm does not answer or accepts no more jobs.

        Raises:
            UserError: sbatch refuses for good, or repeatedly for an unknown reason.
        """
        logged: Reason | None = None
        unexplained = 0
        for delay_s in delays(self.queue.interval_s):
            self._record(None)
            try:
                return self._accepted(self._sbatch())
            except RuntimeError as error:
                words, reason = last_line(str(error)), find_reason(str(error))
            unexplained += reason is None
            if unexplained == UNEXPLAINED_TRIES or (reason and reason.then == "never"):
                break
            if reason is None or reason != logged:
                log.warning("sbatch: %s (%s)", reason.describe(self.name) if reason else "retrying soon", words)
            logged = reason
            time.sleep(delay_s)
            if job := self.adopt():  # a time-out may hide a success
                return job
        what = reason.describe(self.name) if reason else "check slurm/site.yaml"
        unfit = "".join(f"; {node.node} is excluded as unfit: {node.reason}" for node in unfit_nodes(self.run))
        raise UserError(f"{self.run}: sbatch refuses the job: {words}; {what}{unfit}")

    def look_up(self, job: str) -> QueuedJob | None:
        """Return a job as Slurm reports it; None while Slurm does not answer."""
        return self.queue.look_up(job, self.submitted)

    def log_of(self, job: str) -> Path:
        """Return the log of the job, which all its restarts share."""
        return self.run / "slurm" / f"{job}_0_log.out"

    def release(self, job: str | None) -> None:
        """Log that a job continues without its launcher; None if Slurm's answer was not waited for."""
        if job is None and read_submission(self.run) is None:
            log.warning("%s: nothing was submitted", self.run)
            return
        known = f"job {job} continues" if job else "a job that it has in the queue continues"
        remedy = f"`scancel {job or f'--name={self.name}'}` cancels it"
        log.warning("%s: %s without this launcher; the same command waits for it again, %s", self.run, known, remedy)

    def finish(self) -> None:
        """Do not wait for what a job does after its run is done."""

    def _jobs_newer_than(self, moment: float) -> list[QueuedJob]:
        """Wait until Slurm answers, as long as the limit on queries requires."""
        while (jobs := self.queue.jobs(moment)) is None:
            time.sleep(min(1.0, self.queue.interval_s))
        return jobs

    def _record(self, job: str | None) -> None:
        self.submitted = time.monotonic()
        order = self.order
        record = Submission(key=order.key, launcher=self.launcher, job=job, name=self.name, code=order.code)
        record_event(self.run, record)

    def _sbatch(self) -> str:
        """Submit once.

        Returns:
            The id of the job.

        Raises:
            RuntimeError: sbatch failed; the message is its own.
        """
        import submitit  # imported late: a launcher that adopts a job does not need it

        folder = self.run / "slurm"  # shared by all jobs; must exist before a job opens its log
        for path in folder.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # another launcher was faster
                if LEFTOVER.fullmatch(path.name) and path.stat().st_mtime < time.time() - LEFTOVER_AFTER_S:
                    path.unlink()
        executor = submitit.SlurmExecutor(folder=folder)
        executor.update_parameters(
            job_name=self.name,
            dependency="singleton",  # two jobs of one name never run at once
            setup=[
                f"export PYTHONPATH={shlex.quote(str(ROOT))}:$PYTHONPATH",
                f"export OMP_NUM_THREADS={self.resources.cpus}",
                "export SLURM_EXPORT_ENV=ALL",  # otherwise srun would apply the job's --export
            ],
            # Slurm 22.05 to 23.02 do not pass the job's number of cores to its steps.
            srun_args=["--kill-on-bad-exit=1", f"--cpus-per-task={self.resources.cpus}"],
            stderr_to_stdout=True,
            **self.resources.as_submitit([node.node for node in unfit_nodes(self.run)]),
        )
        kept = self._kept_variables()
        # If Snakemake is a job itself, its variables must not reach ours, except for those that a user sets for all.
        with submitit.helpers.clean_env(), submitit.helpers.environment_variables(**kept):
            return executor.submit(run_job, self.order).job_id

    def _kept_variables(self) -> dict[str, str]:
        """Return the user's choice of cluster and account; to sbatch this variable matters more than our option."""
        account = () if "account" in parse_options(self.resources.sbatch) else ("SBATCH_ACCOUNT",)
        return {name: os.environ[name] for name in (*CLUSTER_VARIABLES, *account) if name in os.environ}

    def _accepted(self, job: str) -> str:
        self._record(job)
        self.queue.reset_interval()
        log.info("submitted job %s (%s); log: %s", job, self.name, self.log_of(job))
        return job


def delays(interval_s: float) -> Iterator[float]:
    """Yield the seconds to wait after each failed submission, in proportion to the interval of the queue."""
    scale, delay_s = min(1.0, interval_s / 60), FIRST_DELAY_S
    while True:
        yield scale * delay_s
        delay_s = min(2 * delay_s, LONGEST_DELAY_S)


def job_name(run: Path, key: str) -> str:
    """Return a job name that identifies the folder `run` and the `key` of its specification."""
    folder = run.resolve()
    digest = hashlib.sha256(f"{folder} {key}".encode()).hexdigest()[:10]
    return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(folder.parts[1:][-4:])) + "-" + digest


def last_line(words: str) -> str:
    """Return the last line of an sbatch error that has text."""
    return next((line for line in reversed(words.strip().split("\n")) if line.strip()), "no reason given").strip()

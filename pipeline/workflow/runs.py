"""State of each run of a campaign, its cause, and its progress."""

import errno
import fcntl
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from pipeline.cluster.queue import WAITING, QueuedJob
from pipeline.cluster.state import newest_checkpoint, read_submission
from pipeline.config import RunSpec, load_run, sibling_runs
from pipeline.core.artifacts import Artifact, DatasetArtifact, RunArtifact, RunId, Trained
from pipeline.core.errors import UserError, count_of
from pipeline.core.files import tail
from pipeline.core.layout import COST_FILE, DONE_FILE, LOCK_FILE, PROGRESS_FILE, RUN_FILE
from pipeline.core.records.record import parse_record
from pipeline.core.records.training import AnyProgress, ProgressLine, TrainingCost
from pipeline.core.schema import validate
from pipeline.papers.project import Project
from pipeline.workflow.failures import TRAIN_LOG, Failed, failure_of
from pipeline.workflow.graph import Graph, flatten

State = Literal["done", "running", "waiting", "failed", "not run"]
STATES: tuple[State, ...] = ("done", "running", "waiting", "failed", "not run")
SILENT_S = 900.0  # longer than any validation
STARVED = 0.1  # fraction of the time spent waiting; rare, because batches are prepared ahead
PROGRESS_TAIL_BYTES = 1 << 16


@dataclass(frozen=True)
class RunProgress:
    """The last progress line of a training.

    Attributes:
        step: Step of the line.
        perplexity: Training perplexity; None if all its steps were skipped.
        skipped: Steps that were skipped since the line before.
        tokens_per_s: Throughput in target tokens.
        loader_share: Fraction of the time spent waiting for batches.
        seconds_left: Estimate of the training, minus the time since the line.
        silent_s: Seconds since the line.
    """

    step: int
    perplexity: float | None
    skipped: int
    tokens_per_s: float
    loader_share: float
    seconds_left: float
    silent_s: float


@dataclass(frozen=True)
class RunState:
    """The state of a training.

    Attributes:
        state: One of STATES.
        step: Steps done, by its last log line or newest checkpoint.
        steps: Steps of the whole training.
        why: Why it waits, failed, or is not run.
        remedy: What the user has to do; empty if nothing.
        job: Job id on Slurm.
        progress: Its last progress line while it runs.
    """

    run: RunId
    state: State
    step: int
    steps: int
    why: str = ""
    remedy: str = ""
    job: str = ""
    progress: RunProgress | None = None


class Runs:
    """Reader of run states, which caches only what does not change."""

    def __init__(self, graph: Graph):
        self.graph, self.layout = graph, graph.project.layout
        self.steps_of_first_seed = cache(lambda run: graph.project.run_spec(run).training.max_steps)
        self.other_training = cache(lambda run: newest_other_training(graph.project, run))

    def steps(self, run: RunId) -> int:
        """Return the steps of a training by its settings, which are the same for every seed."""
        return self.steps_of_first_seed(replace(run, seed=self.graph.project.config.seed_list[0]))

    def state_of(self, run: RunId, jobs: Iterable[QueuedJob], driven: bool) -> RunState:
        """Return the state of a run; a running Snakemake will start it if it is `driven`."""
        folder, steps = self.layout.run(run), self.steps(run)
        if (folder / DONE_FILE).exists():
            return RunState(run, "done", steps, steps)
        step = newest_checkpoint(folder)
        job = live_job(folder, jobs)
        if job and job.state in WAITING:
            reason = job.reason_to_wait
            remedy = reason.remedy_in_queue(job.job) if reason and reason.then != "waits" else ""
            return RunState(run, "waiting", step, steps, reason.meaning if reason else job.reason, remedy, job.job)
        if job or is_locked(folder):
            return running_state(run, folder, step, steps, job.job if job else "")
        if failed := failure_of(folder, folder / TRAIN_LOG):
            return RunState(run, "failed", step, steps, failed.cause, remedy_of(failed))
        return RunState(run, "waiting" if driven else "not run", step, steps, self.why_not(run, step, driven))

    def why_not(self, run: RunId, step: int, driven: bool) -> str:
        """Return what a run with `step` steps done waits for: an input or, if `driven` by Snakemake, its turn."""
        missing = [
            artifact for artifact in flatten(self.graph.inputs(Trained(run))) if not self.layout.path(artifact).exists()
        ]
        if missing:
            return f"needs {describe_artifact(missing[0])}"
        if driven:
            return "its turn"
        if step:
            return f"stopped after step {step:,}"
        other = self.other_training(run)
        return f"trained with other settings, where {other.differences}" if other else ""


def running_state(run: RunId, folder: Path, step: int, steps: int, job: str) -> RunState:
    """Return the state of a run in training in `folder`, by its last `step` of `steps` and Slurm's `job` id."""
    progress = read_progress(folder)
    why, remedy = diagnose(progress, folder) if progress else ("", "")
    return RunState(run, "running", max(step, progress.step if progress else 0), steps, why, remedy, job, progress)


def diagnose(progress: RunProgress, folder: Path) -> tuple[str, str]:
    """Return what is wrong with a running training, by its last `progress` line, and the remedy; or empty texts."""
    if progress.silent_s > SILENT_S:
        return f"has logged nothing for {progress.silent_s / 60:.0f} minutes", f"check {folder / 'logs/train.log'}"
    if progress.skipped:
        why = f"skipped {count_of(progress.skipped, 'step')}, as their loss or gradient was not finite"
        return why, f"if this lasts, lower training.lr_factor or lr; {folder / 'logs/train.log'} names their lines"
    if progress.loader_share > STARVED and progress.step > 1:  # every training waits for its first batch
        remedy = "other work may take its cores, or its disk is slow: give it more cores, or the corpus a faster disk"
        return f"waits for its batches {100 * progress.loader_share:.0f} % of the time", remedy
    return "", ""


def live_job(folder: Path, jobs: Iterable[QueuedJob]) -> QueuedJob | None:
    """Return the last submitted Slurm job of a run's `folder` if it is pending or running among `jobs`."""
    note = read_submission(folder)
    number = note.job if note and note.launcher == "slurm" else None
    return next((job for job in jobs if job.job == number and not job.is_over), None)


def remedy_of(failed: Failed) -> str:
    """Return what to do about a failure."""
    if failed.bug_in:
        return f"a bug in {failed.bug_in}; if that code is not yours, please report it with {failed.log}"
    return f"fix it, then run the same command; see {failed.log}"


def describe_artifact(artifact: Artifact) -> str:
    """Describe a missing artifact."""
    if isinstance(artifact, DatasetArtifact):
        return f"the corpus {artifact.dataset}"
    return f"{artifact.run.folder} first" if isinstance(artifact, RunArtifact) else str(artifact)


def read_progress(folder: Path) -> RunProgress | None:
    """Read the progress of the run in `folder`; None before its first line."""
    path = folder / PROGRESS_FILE
    lines = last_lines(path)
    found = next((line for line in reversed(lines) if isinstance(line, ProgressLine)), None)
    if found is None:
        return None
    silent = max(0.0, time.time() - path.stat().st_mtime)
    left = max(0.0, found.seconds_left - silent)
    return RunProgress(
        found.step, found.perplexity, found.skipped, found.tokens_per_s, found.loader_share, left, silent
    )


def last_lines(path: Path) -> list[AnyProgress]:
    """Parse the complete lines at the end of a file."""
    try:
        whole = tail(path, PROGRESS_TAIL_BYTES).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    found = []
    for line in whole:
        try:
            found.append(parse_record(AnyProgress, line, str(path)))
        except UserError:  # the first line may be cut
            continue
    return found


def is_locked(folder: Path) -> bool:
    """Return whether a process of this machine works on the run (pipeline/training/ownership.py takes the lock)."""
    try:
        with open(folder / LOCK_FILE, "rb") as lock:
            # shared and read-only, so that checks do not see each other; filelock has no such lock
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
        return False  # without locks no training begins
    return False


NAMED = 3
"""Differing settings that are listed; of others only the number."""


@dataclass(frozen=True)
class OtherTraining:
    """A finished training of the same name with other settings.

    Attributes:
        differences: How the current settings differ, in words.
        hours: Device hours it took.
    """

    folder: Path
    differences: str
    hours: float | None


def newest_other_training(project: Project, run: RunId) -> OtherTraining | None:
    """Return the newest finished training with other settings; None if there is none or its settings cannot be read."""
    finished = [sibling for sibling in sibling_runs(project.layout.run(run)) if (sibling / DONE_FILE).exists()]
    if not finished:
        return None
    with suppress(UserError, FileNotFoundError):  # `free` may remove one
        newest = max(finished, key=lambda folder: (folder / DONE_FILE).stat().st_mtime)
        current = validate(RunSpec, project.run_yaml(run), run.folder)
        if found := current.differences(load_run(newest / RUN_FILE)):
            cost = TrainingCost.read_if_valid(newest / COST_FILE)
            return OtherTraining(newest, listed_differences(found), cost.device_hours if cost else None)
    return None


def listed_differences(differences: list[str]) -> str:
    """Join the first differences, and count the others."""
    more = f"; {len(differences) - NAMED} more" if len(differences) > NAMED else ""
    return "; ".join(differences[:NAMED]) + more


def describe_other_training(project: Project, run: RunId) -> str:
    """Return a line on a finished training with other settings; empty if there is none."""
    other = newest_other_training(project, run)
    if other is None:
        return ""
    took = f", which took {other.hours:.2g} device hours" if other.hours is not None else ""
    return f"{run.folder} exists with other settings: {other.folder.name}{took}; there, {other.differences}"

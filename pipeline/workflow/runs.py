"""In which state each run of a campaign is, and why."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pipeline.cluster.markers import newest_checkpoint, read_submission
from pipeline.cluster.queue import WAITING, QueuedJob
from pipeline.core.artifacts import DatasetArtifact, Product, RunArtifact, RunId, Trained
from pipeline.core.layout import DONE_FILE
from pipeline.workflow.failures import Failed, failures
from pipeline.workflow.graph import Graph, flat
from pipeline.workflow.held import is_held
from pipeline.workflow.other_settings import trained_otherwise
from pipeline.workflow.progress import Progress, read_progress

State = Literal["done", "running", "waiting", "failed", "not run"]
STATES: tuple[State, ...] = ("done", "running", "waiting", "failed", "not run")
SILENT_S = 900.0  # more than a validation takes
STARVED = 0.1  # of the time; batches are composed beside the updates, and seldom waited for


@dataclass(frozen=True)
class RunState:
    """A training.

    Attributes:
        step: updates done, by its last word or its newest checkpoint, of `steps`.
        why: of one that waits, failed, or is not run.
        remedy: what somebody has to do; empty if nothing.
        job: Slurm's number of it.
    """

    run: RunId
    state: State
    step: int
    steps: int
    why: str = ""
    remedy: str = ""
    job: str = ""
    progress: Progress | None = None


class Runs:
    """Looks at runs; remembers only what does not change."""

    def __init__(self, graph: Graph):
        self.graph, self.layout = graph, graph.project.layout
        self.steps = cache(lambda run: graph.project.run_spec(run).training.max_steps)
        self.otherwise = cache(lambda run: trained_otherwise(graph.project, run))

    def look(self, run: RunId, jobs: Iterable[QueuedJob], driven: bool) -> RunState:
        """jobs: the user's on Slurm; driven: whether somebody sees to it that what can be run is."""
        folder, steps = self.layout.run(run), self.steps(run)
        if (folder / DONE_FILE).exists():
            return RunState(run, "done", steps, steps)
        step = newest_checkpoint(folder)
        job = live_job(folder, jobs)
        if job and job.state in WAITING:
            reason = job.reason_to_wait
            remedy = reason.remedy.format(job=job.job) if reason and reason.then != "waits" else ""
            return RunState(run, "waiting", step, steps, reason.meaning if reason else job.reason, remedy, job.job)
        if job or is_held(folder):
            return running(run, folder, step, steps, job.job if job else "")
        if failed := next(training_failures(folder), None):
            return RunState(run, "failed", step, steps, failed.cause, advice(failed))
        return RunState(run, "waiting" if driven else "not run", step, steps, self.why_not(run, step, driven))

    def why_not(self, run: RunId, step: int, driven: bool) -> str:
        """What it waits for: what it is made from, or its turn."""
        missing = [one for one in flat(self.graph.inputs(Trained(run))) if not self.layout.path(one).exists()]
        if missing:
            return f"needs {in_words(missing[0])}"
        if driven:
            return "its turn"
        if step:
            return f"stopped after {step:,} updates"
        other = self.otherwise(run)
        return f"trained with other settings, where {other.differences}" if other else ""


def running(run: RunId, folder: Path, step: int, steps: int, job: str) -> RunState:
    progress = read_progress(folder)
    why, remedy = at_fault(progress, folder) if progress else ("", "")
    return RunState(run, "running", max(step, progress.step if progress else 0), steps, why, remedy, job, progress)


def at_fault(progress: Progress, folder: Path) -> tuple[str, str]:
    """What is wrong with a training that runs, and what to do; empty if nothing is."""
    if progress.silent_s > SILENT_S:
        return f"has said nothing for {progress.silent_s / 60:.0f} minutes", f"look into {folder / 'logs/train.log'}"
    if progress.loader_share > STARVED and progress.step > 1:  # the first batch is waited for by all
        remedy = "other work may take its cores, or its disk is slow: give it more cores, or the corpus a faster disk"
        return f"waits for its batches {100 * progress.loader_share:.0f} % of the time", remedy
    return "", ""


def live_job(folder: Path, jobs: Iterable[QueuedJob]) -> QueuedJob | None:
    """The job on Slurm that a launcher submitted for `folder` last, while it waits or works."""
    note = read_submission(folder)
    number = note.job if note and note.launcher == "slurm" else None
    return next((job for job in jobs if job.job == number and not job.is_over), None)


def training_failures(folder: Path) -> Iterator[Failed]:
    return (one for one in failures(folder) if one.stage == "train")


def advice(failed: Failed) -> str:
    if failed.is_bug:
        return f"a fault of the program, please report it with {failed.log}"
    return f"mend it, then the same command goes on; more in {failed.log}"


def in_words(product: Product) -> str:
    if isinstance(product, DatasetArtifact):
        return f"the corpus {product.dataset}"
    return f"{product.run.folder} first" if isinstance(product, RunArtifact) else str(product)

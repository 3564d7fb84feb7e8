"""State of a campaign: runs by state, other artifacts, cost so far, and failures."""

import itertools
import os
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pipeline.analysis.run_folders import changed_decoding
from pipeline.cluster.queue import Queue, QueuedJob, queue_interval
from pipeline.core import artifacts
from pipeline.core.errors import UserError
from pipeline.core.layout import COST_FILE
from pipeline.core.records.outputs import Decoded
from pipeline.core.records.training import TrainingCost
from pipeline.papers.project import Project
from pipeline.workflow.drivers import Driver, is_on_this_machine, is_snakemake_process, read_drivers
from pipeline.workflow.failures import Failed, failure_of, logs_of
from pipeline.workflow.graph import Graph, datasets_in, runs_in
from pipeline.workflow.runs import STATES, Runs, RunState

WRITTEN_IN_PART = 1.0
"""Modification time of reports that `reprise results` wrote. The workflow rebuilds them, as they may be incomplete."""
SITE_LOG = "logs/site.log"
COUNTED: dict[str, tuple[type[artifacts.Artifact], ...]] = {
    "decodings": (artifacts.Translation, artifacts.Parse, artifacts.Transcript),
    "scores": (artifacts.Score,),
    "reports": (artifacts.Table, artifacts.Figure, artifacts.Claims),
}
"""Kinds of artifacts that are counted, by name."""


@dataclass(frozen=True)
class Campaign:
    """The state of a campaign at one moment.

    Attributes:
        time: When it was read, UNIX seconds.
        driver: The Snakemake processes that make it, in words; empty if there are none.
        runs: State of each training.
        made: (made, wanted) numbers of trainings, decodings, scores and reports.
        failed: Failed stages other than trainings.
        hours: Device hours spent, by device.
        jobs: Numbers of the user's jobs on Slurm, by state.
    """

    time: float
    driver: str
    runs: list[RunState]
    made: dict[str, tuple[int, int]]
    failed: list[Failed]
    hours: dict[str, float]
    jobs: dict[str, int]

    def of_state(self, state: str) -> list[RunState]:
        """Return the runs in one state."""
        return [run for run in self.runs if run.state == state]

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of runs in each state."""
        return {state: len(self.of_state(state)) for state in STATES}

    @property
    def share(self) -> float:
        """Return the fraction of all training steps that are done."""
        return sum(run.step for run in self.runs) / max(1, sum(run.steps for run in self.runs))


class Watch:
    """A repeated view of the campaign of some reports.

    Args:
        reports: Reports whose artifacts are watched.
    """

    def __init__(self, project: Project, reports: Iterable[artifacts.Artifact]):
        self.project, graph = project, Graph(project)
        self.artifacts = graph.closure(reports)
        self.manifests = list(dict.fromkeys(map(artifacts.manifest_of, self.artifacts)))
        self.run_folders = [project.layout.run(run) for run in runs_in(self.artifacts)]
        self.runs = Runs(graph)

    @cached_property
    def paths(self) -> set[str]:
        """Return the absolute paths of the files that drivers register."""
        targets = map(self.project.layout.path, self.manifests)
        return {os.path.abspath(os.path.join(self.project.root, path)) for path in targets}

    def snapshot(self) -> Campaign:
        """Read the current state."""
        drivers = [
            driver for driver in read_drivers(self.project.root).values() if not self.paths.isdisjoint(driver.makes)
        ]
        jobs = self.jobs(drivers) or []
        living = {words: driver for driver in drivers if (words := self.in_words(driver))}
        driver, made = ", ".join(living), {path for process in living.values() for path in process.makes}
        states = [
            self.runs.state_of(run, jobs, bool(made) and self.trained_file(run) in made)
            for run in runs_in(self.artifacts)
        ]
        done = sum(state.state == "done" for state in states)
        return Campaign(
            time=time.time(),
            driver=driver,
            runs=states,
            made={"trainings": (done, len(states))} | {name: self.made(kinds) for name, kinds in COUNTED.items()},
            failed=list(self.other_failures()),
            hours=self.hours(),
            jobs=dict(Counter(job.state.lower() for job in jobs if not job.is_over)),
        )

    def trained_file(self, run: artifacts.RunId) -> str:
        """Return the record of a training, as drivers register it."""
        return os.path.abspath(self.project.root / self.project.layout.path(artifacts.Trained(run)))

    def in_words(self, driver: Driver) -> str:
        """Describe a driver; empty if it has surely ended."""
        return describe_driver(driver, self.jobs([driver], time.monotonic() - (time.time() - driver.began)))

    def jobs(self, drivers: Iterable[Driver], newer_than: float = 0.0) -> list[QueuedJob] | None:
        """Return the user's jobs from the snapshot that all launchers of this machine share.

        Args:
            drivers: Registered Snakemake processes, which may be jobs themselves.
            newer_than: Seconds of the monotonic clock.

        Returns:
            An empty list if nothing was ever submitted. None if Slurm has not answered since `newer_than`.
        """
        if not (any(driver.job for driver in drivers) or self.has_submitted):
            return []
        return Queue(queue_interval()).jobs(max(0.0, newer_than)) if shutil.which("squeue") else None

    @property
    def has_submitted(self) -> bool:
        """Return whether a job of one of the runs was ever submitted to Slurm."""
        return any(map(was_submitted, self.run_folders))

    def made(self, kinds: tuple[type[artifacts.Artifact], ...]) -> tuple[int, int]:
        """Count the artifacts of some kinds that are made with the current settings, and all that are wanted."""
        wanted = [artifact for artifact in self.artifacts if isinstance(artifact, kinds)]
        made = [artifact for artifact in wanted if is_made(self.project.layout.path(artifact))]
        return sum(not self.is_decoded_otherwise(artifact) for artifact in made), len(wanted)

    def is_decoded_otherwise(self, artifact: artifacts.Artifact) -> bool:
        """Return whether other settings than the current ones decoded an output or the output behind a score."""
        if isinstance(artifact, artifacts.Translation | artifacts.Parse | artifacts.Transcript):
            scored_on = getattr(artifact, "scored_on", None)
            artifact = artifacts.Score(artifact.run, "scores", artifact.decoding, artifact.split, scored_on)
        with suppress(UserError):  # a damaged record
            return isinstance(artifact, artifacts.Score) and bool(changed_decoding(self.project, artifact))
        return False

    @cached_property
    def logs(self) -> dict[Path, set[Path]]:
        """Return the logs of the stages other than trainings that make the watched artifacts and their site.

        They are grouped by folder: corpora, runs, then the scale.
        """
        layout = self.project.layout
        corpora = [layout.corpus(name) for name in datasets_in(self.artifacts)]
        found: dict[Path, set[Path]] = {folder: set() for folder in (*corpora, *self.run_folders, layout.scale_folder)}
        for log in (log for manifest in self.manifests for log in logs_of(layout, manifest)):
            found[log.parent.parent].add(log)
        found[layout.scale_folder].add(layout.scale_folder / SITE_LOG)
        return found

    def other_failures(self) -> Iterable[Failed]:
        """Yield failed stages other than trainings."""
        for folder, logs in self.logs.items():
            yield from filter(None, (failure_of(folder, log) for log in sorted(logs)))

    def hours(self) -> dict[str, float]:
        """Sum up hours of trainings and decodings by device; each process counts as a device."""
        hours: dict[str, float] = defaultdict(float)
        layout = self.project.layout
        costs = {run: TrainingCost.read_if_valid(layout.run(run) / COST_FILE) for run in runs_in(self.artifacts)}
        for start in itertools.chain.from_iterable(cost.starts for cost in costs.values() if cost):
            hours[start.device] += start.seconds * start.processes / 3600
        for output in (
            artifact
            for artifact in self.artifacts
            if isinstance(artifact, artifacts.Translation | artifacts.Parse | artifacts.Transcript)
        ):
            if report := Decoded.read_if_valid(layout.path(output).with_suffix(".json")):
                hours[report.device_name(costs[output.run])] += report.seconds / 3600
        return dict(hours)


def is_made(path: Path) -> bool:
    """Return whether a file exists and was not written from partial results."""
    return path.exists() and path.stat().st_mtime > WRITTEN_IN_PART


def was_submitted(folder: Path) -> bool:
    """Return whether a job of this run was ever submitted to Slurm."""
    jobs = folder / "jobs"
    return (folder / "slurm").exists() or (jobs.exists() and any(jobs.glob("**/slurm")))


def describe_process(pid: int) -> str:
    """Return where a driver runs that is process `pid` of this machine."""
    return f"snakemake, process {pid} of this machine"


def describe_driver(driver: Driver, jobs: Iterable[QueuedJob] | None) -> str:
    """Return where a driver runs; empty if it has surely ended. `jobs` is None if Slurm does not answer."""
    if is_on_this_machine(driver):
        alive = is_snakemake_process(driver.pid, driver.user)
        return describe_process(driver.pid) if alive else ""
    named = f"job {driver.job}" if driver.job else f"process {driver.pid}"
    if driver.job is None or jobs is None or driver.user != os.getuid():
        return f"snakemake, {named} on {driver.host}, if it still runs"
    alive = any(job.job == driver.job and not job.is_over for job in jobs)
    return f"snakemake, {named} on {driver.host}" if alive else ""

"""The same workflow, through `--profile slurm` and on this machine alone, ends in the same tables."""

import contextlib
import csv
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from copied_project import copy_project, environment_of, shrink
from finished_project import finished_project
from launching import made
from real_project import real_project
from safetensors.numpy import load_file
from time_limit import PATIENCE_S, until
from tracing import outcomes, starts, submitted

from pipeline.cluster.state import read_submission
from pipeline.core.artifacts import Table
from pipeline.core.json_csv import read_json
from pipeline.workflow.drivers import read_drivers

pytestmark = pytest.mark.cluster

TABLE = Table("multichannel", "table2")
LAYOUT = real_project({"scale": "smoke"}).layout
COST = {"device_hours", "hardware", "commit"}  # what may differ with where and how fast it ran
QUICK = ("--slurm-init-seconds-before-status-checks", "2")


class Workflow:
    """A `snakemake` in a project of its own with short trainings; the warm server forks it and what its jobs run."""

    def __init__(self, folder: Path):
        self.folder = shrink(copy_project(folder))
        self.environment = environment_of(folder, REPRISE_QUEUE_INTERVAL="1", TMPDIR=str(made(folder / "tmp")))
        self.drivers: list[str] = []

    def start(self, *options: str) -> subprocess.Popen:
        with open(self.folder / "snakemake.log", "ab") as log:
            streams = {"stdout": log, "stderr": log}
            return subprocess.Popen(["snakemake", *options], cwd=self.folder, env=self.environment, **streams)

    def kill(self) -> None:
        """Kill Snakemake and its launchers, but not the jobs."""
        for driver in read_drivers(self.folder).values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill what a failed test left behind, here and in Slurm."""
        self.kill()
        records = filter(None, map(read_submission, self.runs))
        jobs = [record.job for record in records if record.launcher == "slurm" and record.job]
        for job in (*self.drivers, *jobs):
            subprocess.run(["scancel", "--quiet", job], check=False)

    def start_as_job(self, *options: str) -> str:
        """Submit the driver; returns its job id."""
        command = ["sbatch", "--parsable", "--mem=1G", "slurm/driver.sbatch", *options]
        submitted = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        self.drivers.append(submitted.stdout.strip())
        return self.drivers[-1]

    @property
    def log(self) -> str:
        return (self.folder / "snakemake.log").read_text()

    @property
    def driver_log(self) -> str:
        return "".join(path.read_text() for path in self.folder.glob("reprise-driver.*.log"))

    @property
    def runs(self) -> list[Path]:
        return sorted((self.folder / "work" / "smoke" / "runs").glob("*/*/*/seed*"))


def weights_in(run: Path) -> dict[str, bytes]:
    """Return the final weights by name, without the commit in the header of their file."""
    return {name: weight.tobytes() for name, weight in load_file(run / "model.safetensors").items()}


def table_in(folder: Path) -> list[dict[str, str]]:
    with open(folder / LAYOUT.path(TABLE), newline="", encoding="utf-8") as handle:
        return [{name: cell for name, cell in row.items() if name not in COST} for row in csv.DictReader(handle)]


def ended(job: str) -> bool:
    asked = subprocess.run(["squeue", "--noheader", "--job", job], capture_output=True, text=True)
    return not asked.stdout.strip()


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Path:
    """A project with the table made on this machine alone."""
    return finished_project(tmp_path_factory, [TABLE])


@pytest.fixture(scope="module")
def there(slurm, here, tmp_path_factory) -> Iterator[Workflow]:
    """A table made through Slurm, whose Snakemake was killed once and then ended before its time limit as a job.

    The text and its subwords were there before, and one job encodes it; in the campaign all such stages are jobs.
    """
    workflow = Workflow(tmp_path_factory.mktemp("slurm"))
    shutil.copytree(here / "work/corpora", workflow.folder / "work/corpora", ignore=shutil.ignore_patterns("encoded"))
    try:
        make_with_interruptions(workflow)
        yield workflow
    finally:
        workflow.end()


def make_with_interruptions(workflow: Workflow) -> None:
    """Make the table by a Snakemake that is killed, then by a job that is ended before its time limit."""
    wanted = ("--config", "scale=smoke", "--", str(LAYOUT.path(TABLE)))
    killed = workflow.start("--profile", "slurm", *QUICK, *wanted)
    until(lambda: any(starts(run) for run in workflow.runs), "a training on Slurm")
    workflow.kill()
    killed.wait()
    driver = workflow.start_as_job(*QUICK, *wanted)
    until(lambda: "Finished jobid" in workflow.driver_log, "the driver's first step")
    subprocess.run(["scancel", "--batch", "--signal=USR1", driver], check=True)  # as before its time limit
    until(lambda: ended(driver), "the end of the driver")


def test_slurm_run_with_kill_and_timeout_matches_the_local_run(here, there):
    assert (there.folder / LAYOUT.path(TABLE)).exists(), there.driver_log[-5000:]
    assert all(outcomes(run) == ["done"] for run in there.runs)
    # the first to start was submitted before the kill, which may have struck while others were
    assert len(submitted(first_started(there))) == 1 and all(len(submitted(run)) <= 1 for run in there.runs)
    assert not [job for run in there.runs for job in run.glob("jobs/*")], "trainings decode at their end"
    assert there.log.count("has been submitted with SLURM jobid") == 1, "the text is encoded by a job"
    assert all(weights_in(run) == weights_in(here / run.relative_to(there.folder)) for run in there.runs)
    assert len(table_in(there.folder)) > 1 and table_in(there.folder) == table_in(here)


def first_started(workflow: Workflow) -> Path:
    return min(workflow.runs, key=lambda run: starts(run)[0].time)


def test_output_lost_later_is_decoded_again_by_one_job(there):
    run = first_started(there)
    manifest = next(run.glob("*/outputs.json"))
    assert {Path(name).parts[0] for name in read_json(manifest)["entries"]} >= {"translations"}
    lost = next(run.glob("translations/*/test.tok"))
    lost.unlink()
    manifest.unlink()
    wanted = ("--profile", "slurm", *QUICK, "--config", "scale=smoke", "--", str(manifest.relative_to(there.folder)))
    assert there.start(*wanted).wait(PATIENCE_S) == 0, there.log[-5000:]
    assert lost.exists()
    (job,) = run.glob("jobs/decode-*")
    assert (len(submitted(run)), len(submitted(job))) == (1, 1)

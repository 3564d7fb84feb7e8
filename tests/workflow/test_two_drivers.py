"""Several Snakemakes in one folder, and a killed one whose successor ends in the same bytes."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from copied_project import call, copy_project, environment_of, require, shrink
from finished_project import shrunk_layout
from real_project import real_project
from time_limit import PATIENCE_S, until

from pipeline.cluster.state import newest_checkpoint
from pipeline.core.artifacts import ModelSizes, RunId
from pipeline.core.records.jobs import RunClaim, StartLine, last_event, read_events
from pipeline.workflow.drivers import read_drivers

TRAINING = real_project({"scale": "smoke"}).layout.run(RunId("weighted", "C", "grammar-smoke-en-de", 1))
FIRST = ("snakemake", "--cores", "1", "--config", "scale=smoke", "--", str(TRAINING / "done.json"))


@pytest.fixture
def project(tmp_path):
    """Return a project in which a stage that the first driver needs never ends."""
    root = copy_project(tmp_path)
    rules = root / "workflow/rules/corpora.smk"
    text = rules.read_text().replace("python -m pipeline {params.stage} --dataset", "sleep 1000; : --dataset")
    assert "sleep 1000" in text
    rules.write_text(text)
    return root


@pytest.fixture
def first(project):
    process = subprocess.Popen(
        [sys.executable, "-m", *FIRST],
        **{"cwd": project, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True},
        env=os.environ | {"PYTHONPATH": str(project)},
    )
    until(lambda: read_drivers(project) or process.poll() is not None, "a driver")
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def drivers(project) -> list[int]:
    return [driver.pid for driver in read_drivers(project).values()]


def test_live_driver_stays_registered_and_blocks_its_targets(project, first):
    other = real_project({"scale": "demo"}).layout.path(ModelSizes("weighted"))
    require(call(project, "snakemake", "--cores", "1", "--config", "scale=demo", "--", str(other)))
    require(call(project, "snakemake", "-n", "--config", "scale=smoke", "--", "weighted"))
    call(project, "snakemake", "--cores", "1", "--config", "scale=smoke", "--", "check_data")
    assert drivers(project) == [first.pid]
    status = require(call(project, "reprise", "status", "weighted", "--no-forecast", "--set", "scale=smoke"))
    assert f"run by snakemake, process {first.pid} of this machine" in status and "to continue:" not in status
    second = call(project, *FIRST)
    assert second.returncode == 1 and first.poll() is None
    remedy = f"process {first.pid}; wait for it, or end it first"
    refused = [line for line in second.stderr.splitlines() if remedy in line]
    assert len(refused) == 1 and "is already being built" in refused[0]
    unlocked = call(project, "reprise", "unlock")
    assert unlocked.returncode == 1 and f"process {first.pid}" in unlocked.stderr
    repair = call(project, "reprise", "verify", "--repair", "--set", "scale=smoke")
    assert repair.returncode == 1
    assert f"not repaired: snakemake runs on this machine as process {first.pid}" in repair.stderr


RUN = shrunk_layout().run(RunId("weighted", "B", "grammar-smoke-en-de", 1))
KILLS = 2


def checkout(folder: Path) -> Path:
    """Make a folder in which the workflow can be run."""
    folder.mkdir()
    return shrink(copy_project(folder))


def start(folder: Path) -> subprocess.Popen:
    command = ["snakemake", "--cores", "1", "--config", "scale=smoke", "--", str(RUN / "done.json")]
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment_of(folder))


def finish(folder: Path) -> bytes:
    """Run the workflow to its end; returns the final weights."""
    assert start(folder).wait(PATIENCE_S) == 0, (folder / "log").read_text()[-4000:]
    return (folder / RUN / "model.safetensors").read_bytes()


def kill_all(workflow: subprocess.Popen, folder: Path) -> None:
    """Kill snakemake with its children, and the training, which has a session of its own."""
    for driver in read_drivers(folder).values():
        os.killpg(driver.pid, signal.SIGKILL)
    workflow.wait()
    owner = last_event(RunClaim, folder / RUN).pid
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may have ended
        if Path(f"/proc/{owner}/cwd").readlink() == folder:  # else another process has got its number
            os.kill(owner, signal.SIGKILL)


def strike(folder: Path) -> int:
    """Start the workflow and kill it within moments of the training's next checkpoint, if it has not ended by then.

    Returns:
        The exit code of the workflow.
    """
    before = newest_checkpoint(folder / RUN)
    workflow = start(folder)
    until(lambda: newest_checkpoint(folder / RUN) > before or workflow.poll() is not None, "a checkpoint")
    time.sleep(random.uniform(0, 0.3))
    if workflow.poll() is None:
        kill_all(workflow, folder)  # and nothing to unlock
    return workflow.returncode


@pytest.mark.slow
def test_workflow_killed_at_random_ends_in_the_same_bytes(tmp_path):
    undisturbed = finish(checkout(tmp_path / "undisturbed"))
    folder = checkout(tmp_path / "disturbed")
    shutil.copytree(tmp_path / "undisturbed/work/corpora", folder / "work/corpora")  # the kills come later
    codes = [strike(folder) for _ in range(KILLS)]
    assert finish(folder) == undisturbed
    starts = [event for event in read_events(folder / RUN) if isinstance(event, StartLine) and event.event == "start"]
    assert -signal.SIGKILL in codes and len(starts) > 1

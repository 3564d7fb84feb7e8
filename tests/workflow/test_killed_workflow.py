"""Snakemake and all that it started are killed dead, and the same command is given again: the same bytes in the end."""

import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from copied_project import copy_project, environment_of, shrink
from finished_project import shrunk_layout

from pipeline.cluster.state import newest_checkpoint
from pipeline.core.artifacts import RunId
from pipeline.core.records.jobs import Claim, StartLine, last_event, read_events
from pipeline.workflow.drivers import read_drivers

RUN = shrunk_layout().run(RunId("weighted", "B", "grammar-smoke-en-de", 1))
PATIENCE_S = 300
KILLS = 2


@pytest.fixture
def checkout(tmp_path):
    """Makes folders in which the workflow can be run."""

    def make(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        return shrink(copy_project(folder))

    return make


def start(folder: Path) -> subprocess.Popen:
    environment = environment_of(folder)
    program = Path(environment["PATH"].split(os.pathsep)[0]) / "snakemake"
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(
            [program, "--cores", "1", "--config", "scale=smoke", "--", str(RUN / "done.json")],
            **{"stdout": log, "stderr": log, "cwd": folder, "env": environment},
        )


def finish(folder: Path) -> bytes:
    """Run the workflow to its end; returns the final weights."""
    assert start(folder).wait(PATIENCE_S) == 0, (folder / "log").read_text()[-4000:]
    return (folder / RUN / "model.safetensors").read_bytes()


def kill_all(workflow: subprocess.Popen, folder: Path) -> None:
    """Kill snakemake with its children, and the training, which has a session of its own."""
    for driver in read_drivers(folder).values():
        os.killpg(driver.pid, signal.SIGKILL)
    workflow.wait()
    owner = last_event(Claim, folder / RUN).pid
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
    until(lambda: newest_checkpoint(folder / RUN) > before or workflow.poll() is not None)
    time.sleep(random.uniform(0, 0.3))
    if workflow.poll() is None:
        kill_all(workflow, folder)  # and nothing to unlock
    return workflow.returncode


@pytest.mark.slow
def test_workflow_killed_at_random_ends_in_the_same_bytes(checkout):
    undisturbed = finish(checkout("undisturbed"))
    folder = checkout("disturbed")
    codes = [strike(folder) for _ in range(KILLS)]
    assert finish(folder) == undisturbed
    starts = [event for event in read_events(folder / RUN) if isinstance(event, StartLine) and event.event == "start"]
    assert -signal.SIGKILL in codes and len(starts) > 1


def until(condition) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)

"""Snakemake and all that it started are killed dead, and the same command is given again: the same bytes in the end."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_project import real_project

from pipeline.core.artifacts import RunId
from pipeline.core.records.jobs import Claim, last_event

ROOT = Path(__file__).resolve().parents[2]
RUN = real_project({"scale": "smoke"}).layout.run(RunId("weighted", "C", "grammar-smoke-en-de", 1))
PATIENCE_S = 300
KILLS = 3


@pytest.fixture
def checkout(tmp_path):
    """Makes folders in which the workflow can be run."""

    def make(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for part in ("Snakefile", "config.yaml", "pipeline", "profiles", "workflow"):
            (folder / part).symlink_to(ROOT / part)
        return folder

    return make


def start(folder: Path, run: Path = RUN) -> subprocess.Popen:
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--config", "scale=smoke", "--"]
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(
            [*command, str(run / "done.json")],
            **{"stdout": log, "stderr": log},
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder)},
            start_new_session=True,
        )


def finish(folder: Path) -> bytes:
    """Run the workflow to its end; returns the final weights."""
    assert start(folder).wait(PATIENCE_S) == 0, (folder / "log").read_text()[-4000:]
    return (folder / RUN / "model.safetensors").read_bytes()


def kill_all(workflow: subprocess.Popen, run: Path) -> None:
    """Kill snakemake with its children, and the training, which has a session of its own."""
    os.killpg(workflow.pid, signal.SIGKILL)
    workflow.wait()
    owner = last_event(Claim, run).pid
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may have ended
        if str(run) in Path(f"/proc/{owner}/cmdline").read_text():
            os.kill(owner, signal.SIGKILL)


def strike(folder: Path) -> None:
    """Start the workflow and kill it within a few seconds of the training's start, if it has not ended by then."""
    before = number_of_starts(folder / RUN)
    workflow = start(folder)
    until(lambda: number_of_starts(folder / RUN) > before or workflow.poll() is not None)
    time.sleep(random.uniform(0, 6))
    if workflow.poll() is None:
        kill_all(workflow, folder / RUN)  # and nothing to unlock


@pytest.mark.slow
def test_workflow_killed_at_random_ends_in_the_same_bytes(checkout):
    undisturbed = finish(checkout("undisturbed"))
    folder = checkout("disturbed")
    for _ in range(KILLS):
        strike(folder)
    assert finish(folder) == undisturbed


def number_of_starts(run: Path) -> int:
    path = run / "state.jsonl"
    return path.read_text().count('"start"') if path.exists() else 0


def until(condition) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)

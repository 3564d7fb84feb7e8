"""Several snakemakes in one folder: each is noted while it lives, and no two make the same file."""

import os
import signal
import subprocess
import sys
import time

import pytest
from copied_project import call, copy_project, require
from real_project import real_project

from pipeline.core.artifacts import ModelSizes, RunId
from pipeline.workflow.drivers import read_drivers

TRAINING = real_project({"scale": "smoke"}).layout.run(RunId("weighted", "C", "grammar-smoke-en-de", 1))
OTHER = real_project({"scale": "demo"}).layout.path(ModelSizes("weighted"))
FIRST = ("snakemake", "--cores", "1", "--config", "scale=smoke", "--", str(TRAINING / "done.json"))
PATIENCE_S = 120


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
    """A driver at work."""
    process = subprocess.Popen(
        [sys.executable, "-m", *FIRST],
        **{"cwd": project, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True},
        env=os.environ | {"PYTHONPATH": str(project)},
    )
    deadline = time.monotonic() + PATIENCE_S
    while not read_drivers(project):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def drivers(project) -> list[int]:
    return [driver.pid for driver in read_drivers(project).values()]


def test_live_driver_stays_registered_and_blocks_its_targets(project, first):
    require(call(project, "snakemake", "--cores", "1", "--config", "scale=demo", "--", str(OTHER)))
    require(call(project, "snakemake", "-n", "--config", "scale=smoke", "--", "weighted"))
    call(project, "snakemake", "--cores", "1", "--config", "scale=smoke", "--", "check_data")
    assert drivers(project) == [first.pid]
    status = require(call(project, "reprise", "status", "weighted", "--no-forecast", "--set", "scale=smoke"))
    assert f"run by snakemake, process {first.pid} of this machine" in status and "to continue:" not in status
    second = call(project, *FIRST)
    assert second.returncode == 1 and first.poll() is None
    refused = [line for line in second.stderr.splitlines() if f"process {first.pid}; end it first" in line]
    assert len(refused) == 1 and "is already being built" in refused[0]
    unlocked = call(project, "reprise", "unlock")
    assert unlocked.returncode == 1 and f"process {first.pid}" in unlocked.stderr
    repair = call(project, "reprise", "verify", "--repair", "--set", "scale=smoke")
    assert (
        repair.returncode == 1
        and f"not repaired: snakemake runs on this machine as process {first.pid}" in repair.stderr
    )


def test_leftovers_of_a_killed_driver_block_nobody(project, first):
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    require(call(project, *FIRST[:-1], "work/smoke/model_sizes/weighted.json"))
    assert drivers(project) == []

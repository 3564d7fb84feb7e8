"""The launcher on Slurm: its requests, the cost of waiting, unfit nodes, and a job of several tasks.

Most of these scenarios wait for Slurm, so they begin at once; a test then waits for its own.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from launching import Bench, Launcher
from programs import install
from time_limit import until
from tracing import outcomes, set_pace, starts, trace

from pipeline.cluster.state import newest_checkpoint, read_submission
from pipeline.core.json_csv import read_json

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("slurm")]

SLURM = ("--launcher", "slurm", "--mem-mb", "200")
HELD = (*SLURM, "--sbatch=--hold")
STEPS = 120


def losses(run: Path) -> list[float]:
    done = read_json(run / "done.json")
    return [done[split]["nll_per_token"] for split in ("dev", "train")]


def unfit_nodes_are_named_excluded_and_given_up_in_the_end(bench: Bench) -> None:
    """The pretend GPUs are none: every node fails the check that a GPU computes."""
    run = bench.new_run(steps=3)
    launcher = bench.launch(run, *SLURM, "--gpus", "1")
    assert launcher.wait() == 1
    assert "node n2 is unfit (no GPU is visible" in launcher.text()
    assert "node n1 is unfit" in launcher.text()
    assert "excluded as unfit" in launcher.text()
    assert not outcomes(run)


def resources_reach_slurm(bench: Bench) -> None:
    run = bench.new_run(steps=3)
    size = ("--nodes", "2", "--gpus", "4", "--cpus", "3", "--runtime-min", "90")
    bench.launch(run, *SLURM, *size, "--sbatch=--hold --partition=high")
    until(lambda: read_submission(run) and read_submission(run).job, "submission")
    command = ["scontrol", "show", "job", read_submission(run).job]
    job = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for fact in ("NumNodes=2", "NumTasks=4", "CPUs/Task=3", "Partition=high", "TimeLimit=01:30:00", "gres:gpu:2"):
        assert fact in job
    assert "MinMemoryNode=200M" in job and "Requeue=1" in job
    (script,) = (run / "slurm").glob("*_submission.sh")
    assert re.search(r"^#SBATCH --signal=USR2@\d+$", script.read_text(), re.M)  # before the time limit
    assert re.search(r"^srun .* --cpus-per-task=3 ", script.read_text(), re.M)  # Slurm 22.05 to 23.02 give one else


def waiting_launchers_are_small_and_ask_as_one(bench: Bench) -> None:
    """Interval 2 s: at most four queries in 6 s, where each of eight on its own would ask three times."""
    folder, real = bench.folder / "bin", shutil.which("squeue")
    install(folder / "squeue", f'#!/bin/sh\necho x >> {folder}/calls\nexec {real} "$@"\n')
    runs = [bench.new_run(steps=3, pace_s=0) for _ in range(8)]
    shared = {"REPRISE_QUEUE_INTERVAL": "2", "TMPDIR": str(bench.folder)}
    waiting = [bench.launch(run, *HELD, path=f"{folder}:", cold=True, **shared) for run in runs]
    until(lambda: all(" waits: " in launcher.text() for launcher in waiting), "eight waiting launchers")
    began, before = time.monotonic(), (folder / "calls").read_text().count("x")
    time.sleep(6)
    calls = (folder / "calls").read_text().count("x") - before
    assert 1 <= calls <= (time.monotonic() - began) / 2 + 1
    processes = [psutil.Process(launcher.process.pid) for launcher in waiting]
    resident_mib = [process.memory_info().rss / 2**20 for process in processes]
    print(f"waiting launcher: {max(resident_mib):.1f} MiB; queries before all waited: {before}")
    assert max(resident_mib) < 60
    assert not any("torch" in part.path for process in processes for part in process.memory_maps())
    for launcher in waiting:
        launcher.end()


def two_tasks_survive_faults_with_the_losses_of_one(bench: Bench) -> None:
    """Two tasks are requeued, and the second is then killed."""

    def start(run: Path, *options: str) -> Launcher:
        return bench.launch(run, "--launcher", "slurm", "--mem-mb", "500", *options, function="paced_training:train")

    one, two = bench.new_run(STEPS, pace_s=0), bench.new_run(STEPS, pace_s=0.2)
    alone, pair = start(one), start(two, "--tasks", "2", "--nodes", "2")
    until(lambda: newest_checkpoint(two) >= 20, "a checkpoint")
    job = read_submission(two).job
    subprocess.run(["scancel", "--signal=USR2", job], check=True)  # as before a preemption or the time limit
    until(lambda: len(starts(two)) == 2, "a start after the requeue")
    assert starts(two)[-1].job == job

    def second_ranks() -> list[int]:
        requeued = starts(two)[-1]
        return [line["pid"] for line in trace(two) if line["pid"] != requeued.pid and line["time"] > requeued.time]

    until(second_ranks, "a step of the second task after the requeue")
    os.kill(second_ranks()[-1], signal.SIGKILL)
    set_pace(two, 0)
    pair.succeed()
    alone.succeed()
    assert len(starts(two)) == 3
    assert losses(two) == pytest.approx(losses(one), rel=1e-4)


SCENARIOS = (
    two_tasks_survive_faults_with_the_losses_of_one,
    unfit_nodes_are_named_excluded_and_given_up_in_the_end,
    resources_reach_slurm,
    waiting_launchers_are_small_and_ask_as_one,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_on_slurm(scenario, begun):
    begun[scenario].result()

"""The launcher on Slurm: its requests, its messages, the cost of waiting, and a job of several tasks."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import toy_job
from launching import Launcher, make_run, until, weights_digest
from programs import install
from submitit import SlurmJob
from tracing import outcomes, starts, trace, workers_one_after_the_other

from pipeline.cluster.state import newest_checkpoint, read_submission
from pipeline.core.json_csv import read_json

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("slurm", "two_tasks")]

SLURM = ("--launcher", "slurm", "--mem-mb", "200")
HELD = (*SLURM, "--sbatch=--hold")
STEPS = 120


@pytest.fixture(scope="module")
def two_tasks(request, slurm, launch_in_module, corpus, tmp_path_factory) -> Iterator[Future | None]:
    """The losses of a run by one task and by two that faults strike, made beside the other tests.

    None if the test that compares them does not run.
    """
    if all(item.function is not test_two_tasks_survive_faults_with_the_losses_of_one for item in request.session.items):
        yield None
        return
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(losses_under_faults, tmp_path_factory.mktemp("tasks"), corpus, launch_in_module)


def losses_under_faults(folder: Path, corpus: Path, launch: Callable[..., Launcher]) -> tuple[list[float], list[float]]:
    """Train by one task, and by two that are requeued and of which the second is then killed."""

    def start(run: Path, *options: str) -> Launcher:
        return launch(run, "--launcher", "slurm", "--mem-mb", "500", *options, function="paced_training:train")

    one, two = (make_run(folder / name, corpus, STEPS, pace_s=0.05) for name in ("one", "two"))
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
    pair.succeed()
    alone.succeed()
    assert len(starts(two)) == 3
    return losses(one), losses(two)


def losses(run: Path) -> list[float]:
    done = read_json(run / "done.json")
    return [done[split]["nll_per_token"] for split in ("dev", "train")]


def squeue(job: str) -> str:
    return subprocess.run(["squeue", "-h", "-j", job, "-o", "%T"], capture_output=True, text=True).stdout.strip()


def test_failure_shows_the_jobs_traceback_and_is_not_retried(new_run, launch):
    run = new_run(steps=30)
    (run / "fail-at").write_text("7")
    launcher = launch(run, *SLURM)
    assert launcher.wait() == 1
    assert re.search(r"job \d+ failed on n2: ValueError: the toy fails at step 7", launcher.text())
    assert 'raise ValueError(f"the toy fails' in launcher.text()
    assert "last lines of" in launcher.text()
    assert outcomes(run) == ["failed"]
    (run / "fail-at").unlink()
    launch(run, *SLURM).succeed()


def test_interrupted_launcher_says_how_to_cancel_the_running_job(new_run, launch):
    run = new_run(steps=100, pace_s=0.05)
    launcher = launch(run, *SLURM)
    until(lambda: starts(run), "start")
    launcher.kill(signal.SIGINT)
    assert launcher.wait() == 130
    job = read_submission(run).job
    assert f"`scancel {job}` cancels it" in launcher.text()
    assert squeue(job) == "RUNNING"
    launch(run, *SLURM).succeed()
    assert len(starts(run)) == 1


@pytest.mark.parametrize("timeout", [True, False], ids=["time limit", "preemption"])
def test_job_interrupted_by_submitit_loses_no_step(new_run, launch, timeout):
    """SIGUSR2 requeues the job; after SIGTERM and SIGUSR2, with no requeue by Slurm, another job follows."""
    run = new_run(steps=100, pace_s=0.05)
    launcher = launch(run, *SLURM)
    until(lambda: newest_checkpoint(run) >= 20, "checkpoint")
    job = read_submission(run).job
    SlurmJob(folder=run / "slurm", job_id=job)._interrupt(timeout=timeout)
    launcher.succeed()
    assert weights_digest(run) == toy_job.expected_digest(100)
    assert outcomes(run) == ["stopped", "done"] and workers_one_after_the_other(run)
    assert (read_submission(run).job == job) == timeout
    assert len({line["step"] for line in trace(run)}) == len(trace(run)) == 100


def test_unfit_nodes_are_named_excluded_and_given_up_in_the_end(new_run, launch):
    """The pretend GPUs are none: every node fails the check that a GPU computes."""
    run = new_run(steps=3)
    launcher = launch(run, *SLURM, "--gpus", "1")
    assert launcher.wait() == 1
    assert "node n2 is unfit (no GPU is visible" in launcher.text()
    assert "node n1 is unfit" in launcher.text()
    assert "excluded as unfit" in launcher.text()
    assert not outcomes(run)


def test_resources_reach_slurm(new_run, launch):
    run = new_run(steps=3)
    size = ("--nodes", "2", "--gpus", "4", "--cpus", "3", "--runtime-min", "90")
    launch(run, *SLURM, *size, "--sbatch=--hold --partition=high")
    until(lambda: read_submission(run) and read_submission(run).job, "submission")
    command = ["scontrol", "show", "job", read_submission(run).job]
    job = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for fact in ("NumNodes=2", "NumTasks=4", "CPUs/Task=3", "Partition=high", "TimeLimit=01:30:00", "gres:gpu:2"):
        assert fact in job
    assert "MinMemoryNode=200M" in job and "Requeue=1" in job


def test_every_slurm_task_gets_the_torch_distributed_variables(new_run, launch):
    run = new_run(steps=3)
    launch(run, *SLURM, "--nodes", "2", "--tasks", "4", function="toy_job:tell_rank").succeed()
    told = [read_json(run / f"rank-{rank}.json") for rank in range(4)]
    assert [(each["RANK"], each["LOCAL_RANK"]) for each in told] == [("0", "0"), ("1", "1"), ("2", "0"), ("3", "1")]
    assert {(each["WORLD_SIZE"], each["MASTER_ADDR"]) for each in told} == {("4", "n1")}
    assert len(starts(run)) == 1


def test_surrounding_jobs_variables_do_not_leak(new_run, launch):
    run = new_run(steps=3)
    leaky = {"SLURM_MEM_PER_CPU": "500", "SLURM_NTASKS": "4", "SLURM_GPUS": "2", "SLURM_JOB_ID": "1", "RANK": "3"}
    launch(run, *SLURM, **leaky).succeed()


def test_impossible_request_is_refused_at_once(new_run, launch):
    run = new_run(steps=3)
    launcher = launch(run, *SLURM, "--sbatch=--partition=nowhere")
    assert launcher.wait() == 1
    assert "invalid partition" in launcher.text()
    assert "slurm/site.yaml" in launcher.text()


def test_waiting_launchers_are_small_and_ask_as_one(tmp_path, corpus, launch):
    """Interval 2 s: at most four queries in 6 s, where each of eight on its own would ask three times."""
    folder, real = tmp_path / "bin", shutil.which("squeue")
    install(folder / "squeue", f'#!/bin/sh\necho x >> {folder}/calls\nexec {real} "$@"\n')
    runs = [make_run(tmp_path / str(number), corpus, 3, 0.0) for number in range(8)]
    options = (*HELD, "--queue-interval", "2")
    waiting = [launch(run, *options, path=f"{folder}:", TMPDIR=str(tmp_path)) for run in runs]
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


def test_two_tasks_survive_faults_with_the_losses_of_one(two_tasks):
    one, two = two_tasks.result()
    assert two == pytest.approx(one, rel=1e-4)

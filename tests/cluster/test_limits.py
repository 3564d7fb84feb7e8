"""A real Slurm with accounts, where a QOS lets a user have two jobs in the queue, and another one."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launching import HERE, PROJECT, Bench
from programs import install
from time_limit import until
from tracing import outcomes, set_pace, starts

from pipeline.cluster.state import read_submission

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("slurm_with_accounts")]

SLURM = ("--launcher", "slurm", "--mem-mb", "100")
LIMIT = "as many of your jobs are in the queue as the site allows"


def submit_limit_is_waited_out_and_logged_once(bench: Bench) -> None:
    """Four runs, two at a time; none of them fails, and none is submitted twice."""
    runs = [bench.new_run(50, 0.5) for _ in range(4)]
    launchers = [bench.launch(run, *SLURM, "--sbatch=--qos=few", TMPDIR=str(bench.folder)) for run in runs]
    until(lambda: sum(LIMIT in launcher.text() for launcher in launchers) == 2, "two launchers at the limit")
    listed = subprocess.run(["squeue", "--noheader", "--qos=few"], capture_output=True, text=True, check=True).stdout
    assert listed.count("\n") == 2
    for run in runs:
        set_pace(run, 0)
    assert [launcher.wait() for launcher in launchers] == [0] * 4, [launcher.text()[-500:] for launcher in launchers]
    assert sorted(launcher.text().count("QOSMaxSubmitJobPerUserLimit") for launcher in launchers)[:2] == [0, 0]
    assert all(launcher.text().count(LIMIT) <= 1 for launcher in launchers)
    assert [outcomes(run) for run in runs] == [["done"]] * 4


SNAKEMAKE = """#!/bin/bash
echo "$@" > arguments
for run in {runs}; do
  python -m pipeline launch --run $run --function toy_job:count_steps --launcher local &
done
wait
"""


def four_seeds_in_one_job_count_once(bench: Bench) -> None:
    """The driver as `here`, with a snakemake that launches four runs beside each other."""
    runs = [bench.new_run(40, 0.1) for _ in range(4)]
    program = install(bench.folder / "bin/snakemake", SNAKEMAKE.format(runs=" ".join(map(str, runs))))
    path = f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": f"{PROJECT}:{HERE}", "TMPDIR": str(bench.folder)}
    command = ["sbatch", "--parsable", "--qos=one", "--mem=2G", "--cpus-per-task=4", PROJECT / "slurm/driver.sbatch"]
    options = ["here", "weighted", "--config", "seeds=4", "--resources", "gpus=8"]
    driver = subprocess.run([*command, *options], cwd=bench.folder, env=environment, capture_output=True, text=True)
    until(lambda: all(map(starts, runs)), "four trainings")
    listed = subprocess.run(["squeue", "--me", "--noheader", "--format=%A %Z"], capture_output=True, text=True).stdout
    assert [line.split()[0] for line in listed.splitlines() if str(bench.folder) in line] == [driver.stdout.strip()]
    assert not any((run / "slurm").exists() for run in runs)
    until(lambda: all(map(outcomes, runs)), "the end of all trainings")
    assert [outcomes(run) for run in runs] == [["done"]] * 4
    assert (bench.folder / "arguments").read_text().split() == ["--configfile=slurm/settings.yaml", *options[1:]]


def requeued_and_held_job_says_how_to_release_it(bench: Bench) -> None:
    """`scontrol requeuehold`: only a release ends it, so the user has to know."""
    run = bench.new_run(20, 0.5)
    launcher = bench.launch(run, *SLURM)
    until(lambda: starts(run), "start")
    job = read_submission(run).job
    subprocess.run(["scontrol", "requeuehold", job], check=True)
    until(lambda: f"`scontrol release {job}` releases it" in launcher.text(), "what to do")
    time.sleep(2)
    set_pace(run, 0)
    subprocess.run(["scontrol", "release", job], check=True)
    assert launcher.wait() == 0, launcher.text()
    assert read_submission(run).job == job


def every_task_gets_the_cores_of_its_job(bench: Bench) -> None:
    """Slurm 22.05 to 23.02 give a task one core unless its step asks for more; seen where the machine has more."""
    run = bench.new_run(3, 0)
    assert bench.launch(run, *SLURM, "--cpus", "3", function="toy_job:tell_cores").wait() == 0
    assert int((run / "cores").read_text()) >= min(3, os.cpu_count())
    (script,) = (run / "slurm").glob("*_submission.sh")
    (command,) = (line for line in script.read_text().split("\n") if line.startswith("srun "))
    assert " --cpus-per-task=3 " in command


SCENARIOS = (
    submit_limit_is_waited_out_and_logged_once,
    four_seeds_in_one_job_count_once,
    requeued_and_held_job_says_how_to_release_it,
    every_task_gets_the_cores_of_its_job,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_on_slurm_with_accounts(scenario, begun):
    begun[scenario].result()

"""A real Slurm with accounts, where a QOS lets a user have two jobs in the queue, and another one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import HERE, PROJECT, Bench
from programs import install
from time_limit import until
from tracing import outcomes, set_pace, starts

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


SCENARIOS = (
    submit_limit_is_waited_out_and_logged_once,
    four_seeds_in_one_job_count_once,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_on_slurm_with_accounts(scenario, begun):
    begun[scenario].result()

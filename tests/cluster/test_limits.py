"""A real Slurm with accounts, where a QOS lets a user have two jobs in the queue."""

import os
import subprocess
import time

import pytest
from launching import make_run, until
from tracing import outcomes, starts

from pipeline.cluster.state import read_submission

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("slurm_with_accounts")]

FEW = ("--launcher", "slurm", "--mem-mb", "100", "--sbatch=--qos=few")
LIMIT = "as many of your jobs are in the queue as the site allows"


def test_submit_limit_is_waited_out_and_logged_once(tmp_path, corpus, launch):
    """Four runs of about five seconds, two at a time; none of them fails, and none is submitted twice."""
    runs = [make_run(tmp_path / str(number), corpus, 50, 0.1) for number in range(4)]
    launchers = [launch(run, *FEW, TMPDIR=str(tmp_path)) for run in runs]
    until(lambda: sum(LIMIT in launcher.text() for launcher in launchers) == 2, "two launchers at the limit")
    listed = subprocess.run(["squeue", "--noheader", "--qos=few"], capture_output=True, text=True, check=True).stdout
    assert listed.count("\n") == 2
    assert [launcher.wait() for launcher in launchers] == [0] * 4, [launcher.text()[-500:] for launcher in launchers]
    assert sorted(launcher.text().count("QOSMaxSubmitJobPerUserLimit") for launcher in launchers)[:2] == [0, 0]
    assert all(launcher.text().count(LIMIT) <= 1 for launcher in launchers)
    assert [outcomes(run) for run in runs] == [["done"]] * 4


def test_requeued_and_held_job_says_how_to_release_it(tmp_path, corpus, launch):
    """`scontrol requeuehold`: only a release ends it, so the user has to know."""
    run = make_run(tmp_path, corpus, 20, 0.1)
    launcher = launch(run, "--launcher", "slurm", "--mem-mb", "100")
    until(lambda: starts(run), "start")
    job = read_submission(run).job
    subprocess.run(["scontrol", "requeuehold", job], check=True)
    until(lambda: f"`scontrol release {job}` releases it" in launcher.text(), "what to do")
    time.sleep(2)
    subprocess.run(["scontrol", "release", job], check=True)
    assert launcher.wait() == 0, launcher.text()
    assert read_submission(run).job == job


def test_every_task_gets_the_cores_of_its_job(tmp_path, corpus, launch):
    """Slurm 22.05 to 23.02 give a task one core unless its step asks for more; seen where the machine has more."""
    run = make_run(tmp_path, corpus, 3, 0.0)
    assert launch(run, *FEW, "--cpus", "3", function="toy_job:tell_cores").wait() == 0
    assert int((run / "cores").read_text()) >= min(3, os.cpu_count())
    (script,) = (run / "slurm").glob("*_submission.sh")
    (command,) = (line for line in script.read_text().split("\n") if line.startswith("srun "))
    assert " --cpus-per-task=3 " in command

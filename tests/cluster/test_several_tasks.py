"""A model trained by several tasks on several nodes ends in the same losses as with one task, under any fault."""

import os
import signal
import subprocess

import pytest
from launching import make_run, until
from tracing import starts, trace

from pipeline.cluster.state import newest_checkpoint, read_submission
from pipeline.core.json_csv import read_json

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("slurm")]

SLURM = ("--launcher", "slurm", "--mem-mb", "500")
STEPS = 120


def losses(run) -> list[float]:
    done = read_json(run / "done.json")
    return [done[split]["nll_per_token"] for split in ("dev", "train")]


def test_two_tasks_survive_faults_with_the_losses_of_one(tmp_path, corpus, launch):
    one, two = (make_run(tmp_path / name, corpus, STEPS, pace_s=0.05) for name in ("one", "two"))
    alone = launch(one, *SLURM, function="paced_training:train")
    pair = launch(two, *SLURM, "--tasks", "2", "--nodes", "2", function="paced_training:train")

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

    assert pair.wait() == 0, pair.text()
    assert alone.wait() == 0, alone.text()
    assert len(starts(two)) == 3
    assert losses(two) == pytest.approx(losses(one), rel=1e-4)

"""Under any fault of the cluster, a training ends in the same weights, and no two jobs work on it at a time.

All faults strike at once, each its own run, on two pretend nodes: this takes as long as the slowest of them. If the
fault reaches the job, that is the real training, slowed down; otherwise it is a chain of hashes. Each step leaves a
trace. Slurm has no accounting here, so nothing can need sacct.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import toy_job
from launching import Launcher, make_run, until, weights_digest
from own_slurm import SCRIPT, STATE
from programs import install
from tracing import CHECKPOINT_EVERY, outcomes, starts, trace, workers_one_after_the_other

from pipeline.cluster.state import newest_checkpoint, read_submission

pytestmark = pytest.mark.cluster

ANYWHERE = ("--launcher", "slurm", "--mem-mb", "500")  # on n2, as long as it is there
ON_N1 = (*ANYWHERE, "--sbatch=--partition=low --nodelist=n1")
STEPS = 240


class Trial:
    """One run and the launchers that see it through."""

    def __init__(self, folder: Path, corpus: Path, pace_s: float, function: str, start: Callable[..., Launcher]):
        self.run = make_run(folder, corpus, STEPS, pace_s)
        self.pace_s = pace_s
        self.function = function
        self.start = start

    def launch(self, *options: str, step: int = 0, **settings: str) -> Launcher:
        """Start a launcher, and wait until the job's newest checkpoint is of `step` or later."""
        launcher = self.start(self.run, *(options or ON_N1), function=self.function, **settings)
        until(lambda: newest_checkpoint(self.run) >= step, f"{self.run}: step {step}")
        return launcher

    @property
    def job(self) -> str:
        return read_submission(self.run).job

    @property
    def jobs(self) -> list[str]:
        return [start.job for start in starts(self.run)]

    @property
    def seconds_lost(self) -> float:
        """Work done twice, seconds."""
        return (len(trace(self.run)) - STEPS) * self.pace_s


def nothing(trial: Trial) -> None:
    trial.launch().succeed()
    assert len(trial.jobs) == 1


def launcher_killed(trial: Trial) -> None:
    trial.launch(step=40).kill()
    job = trial.job
    again = trial.launch()
    again.succeed()
    assert f"adopted job {job}" in again.text()
    assert len(trial.jobs) == 1


def launcher_killed_and_its_record_lost(trial: Trial) -> None:
    trial.launch(step=40).kill()
    path = trial.run / "state.jsonl"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if '"submit"' not in line))
    again = trial.launch()
    again.succeed()
    assert "adopted job" in again.text()
    assert len(trial.jobs) == 1


def two_launchers_at_once(trial: Trial) -> None:
    launchers = [trial.launch(), trial.launch()]
    assert [launcher.wait() for launcher in launchers] == [0, 0], [launcher.text() for launcher in launchers]
    assert len(trial.jobs) == 1


def process_killed(trial: Trial) -> None:
    launcher = trial.launch(step=40)
    until(lambda: len(trace(trial.run)) >= 55, "step 55")  # three quarters of the way to the next checkpoint
    os.kill(starts(trial.run)[-1].pid, signal.SIGKILL)
    launcher.succeed()
    assert len(trial.jobs) == 2
    assert 0 < trial.seconds_lost <= 2 * CHECKPOINT_EVERY * trial.pace_s  # the newest one may still be being written


def requeued(trial: Trial) -> None:
    launcher = trial.launch(step=40)
    subprocess.run(["scontrol", "requeue", trial.job], check=True)
    launcher.succeed()
    assert set(trial.jobs) == {trial.job}
    assert trial.seconds_lost == 0


def preempted(trial: Trial) -> None:
    most, rest = 24000, 16000  # MB of the node's 32000: room for the urgent job when this one goes, and only then
    launcher = trial.launch("--launcher", "slurm", "--mem-mb", str(most), ON_N1[-1], step=40)
    options = ["--partition=high", "--nodelist=n1", f"--mem={rest}", "--output=/dev/null"]
    subprocess.run(["sbatch", *options, "--wrap=sleep 5"], check=True, capture_output=True)
    launcher.succeed()
    assert trial.jobs == [trial.job] * 2, launcher.text()
    assert trial.seconds_lost == 0, launcher.text()


def time_limit(trial: Trial) -> None:
    """Each start ends before its two minutes are over. The id may change: a restarting controller can miss to warn."""
    trial.launch(*ON_N1, "--runtime-min", "2").succeed()
    assert len(trial.jobs) > 1
    assert trial.seconds_lost == 0


def controller_restarted(trial: Trial) -> None:
    launcher = trial.launch(step=20)
    pid = int((STATE / "run" / "slurmctld.pid").read_text())
    os.kill(pid, signal.SIGTERM)
    time.sleep(5)
    subprocess.run(["slurmctld"], check=True)
    launcher.succeed()
    assert len(trial.jobs) == 1


def node_daemon_killed_and_back(trial: Trial) -> None:
    """Slurm gives the node up and starts the job elsewhere, while the old process still works."""
    launcher = trial.launch(*ANYWHERE, step=20)
    assert starts(trial.run)[-1].node == "n2"
    os.kill(int((STATE / "run" / "slurmd.n2.pid").read_text()), signal.SIGKILL)
    until(lambda: len(trial.jobs) > 1, "second start")
    subprocess.run([SCRIPT, "node", "n2"], check=True)
    launcher.succeed()
    assert starts(trial.run)[-1].node == "n1"
    assert outcomes(trial.run) == ["taken over", "done"]


def sbatch_fails_twice(trial: Trial) -> None:
    folder, real = trial.run / "bin", shutil.which("sbatch")
    install(
        folder / "sbatch",
        f"#!/bin/sh\necho x >> {folder}/calls\n"
        f'[ $(wc -l < {folder}/calls) -gt 2 ] && exec {real} "$@"\n'
        "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1\n",
    )
    launcher = trial.launch(path=f"{folder}:")
    launcher.succeed()
    assert len((folder / "calls").read_text().splitlines()) == 3
    assert launcher.text().count("Slurm's controller does not answer") == 1  # logged once, not at every try
    assert len(trial.jobs) == 1


def cancelled(trial: Trial) -> None:
    launcher = trial.launch(step=40)
    job = trial.job
    subprocess.run(["scancel", job], check=True)
    assert launcher.wait() == 1
    assert f"job {job} was cancelled" in launcher.text()
    reached = newest_checkpoint(trial.run)
    assert reached >= 40
    again = trial.launch()
    again.succeed()
    assert f"resumed after step {reached}" in again.text()
    assert outcomes(trial.run) == ["stopped", "done"]


SHORT_S, LONG_S = 0.08, 0.45  # seconds a step; a training of 108 s is warned of its limit of 2 minutes
FAULTS = {
    nothing: SHORT_S,
    launcher_killed: SHORT_S,
    launcher_killed_and_its_record_lost: SHORT_S,
    two_launchers_at_once: SHORT_S,
    process_killed: SHORT_S,
    requeued: SHORT_S,
    preempted: LONG_S,  # a busy Slurm takes half a minute to see who comes first
    time_limit: LONG_S,
    controller_restarted: SHORT_S,
    node_daemon_killed_and_back: LONG_S,
    sbatch_fails_twice: SHORT_S,
    cancelled: SHORT_S,
}
TRAINING, TOY = "paced_training:train", "toy_job:count_steps"
OUTSIDE_THE_JOB = {
    launcher_killed,
    launcher_killed_and_its_record_lost,
    two_launchers_at_once,
    controller_restarted,
    sbatch_fails_twice,
}


@pytest.fixture(scope="module")
def struck(slurm, launch_in_module, corpus, tmp_path_factory):
    """Every fault's trial and the future of its strike."""
    assert subprocess.run(["sacct"], capture_output=True).returncode != 0
    with ThreadPoolExecutor(len(FAULTS)) as pool:
        trials = {
            fault: Trial(tmp_path_factory.mktemp(fault.__name__), corpus, pace_s, function, launch_in_module)
            for fault, pace_s in FAULTS.items()
            for function in [TOY if fault in OUTSIDE_THE_JOB else TRAINING]
        }
        yield {fault: (trial, pool.submit(fault, trial)) for fault, trial in trials.items()}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_training_ends_as_if_undisturbed_by(fault, struck):
    trial, strike = struck[fault]
    strike.result()
    if fault in OUTSIDE_THE_JOB:
        assert weights_digest(trial.run) == toy_job.expected_digest(STEPS)
    else:
        assert weights_digest(trial.run) == weights_digest(struck[nothing][0].run)
    assert workers_one_after_the_other(trial.run)
    print(f"{fault.__name__}: {len(trial.jobs)} starts, {trial.seconds_lost:.2f} s of work done twice")

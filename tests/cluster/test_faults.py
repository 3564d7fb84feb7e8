"""Under any fault of the cluster, a training ends in the same weights, and no two jobs work on it at a time.

All faults strike at once, each its own run, on two pretend nodes: this takes as long as the slowest of them. The job
is slow until its fault has struck, and then as fast as it can be. It is the real training if the fault does to it what
no other fault does; otherwise it is a chain of hashes. Each step leaves a trace. Slurm has no accounting here, so
nothing can need sacct.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import toy_job
from launching import Launcher, make_run, weights_digest
from own_slurm import SCRIPT, STATE
from time_limit import until
from tracing import CHECKPOINT_EVERY, outcomes, set_pace, starts, trace, workers_one_after_the_other

from pipeline.cluster.state import newest_checkpoint, read_submission

pytestmark = pytest.mark.cluster

ANYWHERE = ("--launcher", "slurm", "--mem-mb", "500")  # on n2, as long as it is there
ON_N1 = (*ANYWHERE, "--sbatch=--partition=low --nodelist=n1")
STEPS = 160
QUICK_S, SLOW_S = 0.1, 0.6  # a step; before a fault may strike, and while it does


class Trial:
    """One run and the launchers that see it through."""

    def __init__(self, folder: Path, corpus: Path, function: str, start: Callable[..., Launcher]):
        self.run = make_run(folder, corpus, STEPS, QUICK_S)
        self.function = function
        self.start = start

    def launch(self, *options: str, step: int = 0, **settings: str) -> Launcher:
        """Start a launcher, wait until the job's newest checkpoint is of `step` or later, and slow the job down."""
        launcher = self.start(self.run, *(options or ON_N1), function=self.function, **settings)
        until(lambda: newest_checkpoint(self.run) >= step, f"{self.run}: step {step}")
        set_pace(self.run, SLOW_S)
        return launcher

    def hurry(self) -> None:
        """Let the job end soon."""
        set_pace(self.run, 0)

    def hurry_after(self, count: int, launcher: Launcher) -> None:
        """Let the job end soon once it was started so often, or its launcher ended."""
        until(lambda: len(self.jobs) >= count or launcher.process.poll() is not None, f"{self.run}: start {count}")
        self.hurry()

    @property
    def job(self) -> str:
        return read_submission(self.run).job

    @property
    def jobs(self) -> list[str]:
        return [start.job for start in starts(self.run)]

    @property
    def steps_repeated(self) -> int:
        return len(trace(self.run)) - STEPS


def nothing(trial: Trial) -> None:
    launcher = trial.launch()
    trial.hurry()
    launcher.succeed()
    assert len(trial.jobs) == 1


def launcher_killed(trial: Trial) -> None:
    trial.launch(step=40).kill()
    job = trial.job
    again = trial.launch()
    until(lambda: f"adopted job {job}" in again.text() or again.process.poll() is not None, "adoption")
    trial.hurry()
    again.succeed()
    assert f"adopted job {job}" in again.text()
    assert len(trial.jobs) == 1


def two_launchers_at_once(trial: Trial) -> None:
    launchers = [trial.launch(), trial.launch()]
    until(lambda: all("job " in launcher.text() for launcher in launchers), "both launchers at work")
    trial.hurry()
    assert [launcher.wait() for launcher in launchers] == [0, 0], [launcher.text() for launcher in launchers]
    assert len(trial.jobs) == 1


def process_killed(trial: Trial) -> None:
    launcher = trial.launch(step=40)
    until(lambda: len(trace(trial.run)) % CHECKPOINT_EVERY >= 15, "a step far from checkpoints")
    os.kill(starts(trial.run)[-1].pid, signal.SIGKILL)
    trial.hurry()
    launcher.succeed()
    assert len(trial.jobs) == 2
    assert 0 < trial.steps_repeated <= 2 * CHECKPOINT_EVERY  # the newest one may still be being written


def requeued(trial: Trial) -> None:
    launcher = trial.launch(step=40)
    subprocess.run(["scontrol", "requeue", trial.job], check=True)
    trial.hurry_after(2, launcher)
    launcher.succeed()
    assert set(trial.jobs) == {trial.job}
    assert trial.steps_repeated == 0


def preempted(trial: Trial) -> None:
    most, rest = 24000, 16000  # MB of the node's 32000: room for the urgent job when this one goes, and only then
    launcher = trial.launch("--launcher", "slurm", "--mem-mb", str(most), ON_N1[-1], step=40)
    options = ["--partition=high", "--nodelist=n1", f"--mem={rest}", "--output=/dev/null"]
    subprocess.run(["sbatch", *options, "--wrap=sleep 1"], check=True, capture_output=True)
    trial.hurry_after(2, launcher)
    launcher.succeed()
    assert trial.jobs == [trial.job] * 2, launcher.text()
    assert trial.steps_repeated == 0, launcher.text()


def time_limit(trial: Trial) -> None:
    """The start ends before its minute is over. The id may change: a restarting controller can miss to warn."""
    launcher = trial.launch(*ON_N1, "--runtime-min", "1", step=20)
    trial.hurry_after(2, launcher)
    launcher.succeed()
    assert len(trial.jobs) > 1
    assert trial.steps_repeated == 0


def controller_restarted(trial: Trial) -> None:
    launcher = trial.launch(step=20)
    pid = int((STATE / "run" / "slurmctld.pid").read_text())
    os.kill(pid, signal.SIGTERM)
    time.sleep(5)
    subprocess.run(["slurmctld"], check=True)
    trial.hurry()
    launcher.succeed()
    assert len(trial.jobs) == 1


def node_daemon_killed_and_back(trial: Trial) -> None:
    """Slurm gives the node up and starts the job elsewhere, while the old process still works."""
    launcher = trial.launch(*ANYWHERE, step=20)
    assert starts(trial.run)[-1].node == "n2"
    os.kill(int((STATE / "run" / "slurmd.n2.pid").read_text()), signal.SIGKILL)
    trial.hurry_after(2, launcher)
    subprocess.run([SCRIPT, "node", "n2"], check=True)
    launcher.succeed()
    assert starts(trial.run)[-1].node == "n1"
    assert outcomes(trial.run) == ["taken over", "done"]


TRAINING, TOY = "paced_training:train", "toy_job:count_steps"
FAULTS = {
    nothing: TRAINING,
    launcher_killed: TOY,
    two_launchers_at_once: TOY,
    process_killed: TRAINING,
    requeued: TRAINING,  # SIGTERM
    preempted: TRAINING,  # SIGUSR2
    time_limit: TOY,
    controller_restarted: TOY,
    node_daemon_killed_and_back: TRAINING,
}
"""The faults, and what the job computes."""


@pytest.fixture(scope="module")
def struck(slurm, launch_in_module, corpus, tmp_path_factory):
    """Every fault's trial and the future of its strike."""
    assert subprocess.run(["sacct"], capture_output=True).returncode != 0
    with ThreadPoolExecutor(len(FAULTS)) as pool:
        trials = {
            fault: Trial(tmp_path_factory.mktemp(fault.__name__), corpus, function, launch_in_module)
            for fault, function in FAULTS.items()
        }
        yield {fault: (trial, pool.submit(fault, trial)) for fault, trial in trials.items()}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_training_ends_as_if_undisturbed_by(fault, struck):
    trial, strike = struck[fault]
    strike.result()
    if trial.function == TOY:
        assert weights_digest(trial.run) == toy_job.expected_digest(STEPS)
    else:
        assert weights_digest(trial.run) == weights_digest(struck[nothing][0].run)
    assert workers_one_after_the_other(trial.run)
    print(f"{fault.__name__}: {len(trial.jobs)} starts, {trial.steps_repeated} steps done twice")

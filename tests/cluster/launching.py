"""Run folders for the tests of the launcher, and launchers to put them through."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from run_folders import write_settings
from time_limit import PATIENCE_S
from tracing import CHECKPOINT_EVERY, set_pace
from warm import warm_programs

from pipeline.cluster.state import read_submission
from pipeline.core.json_csv import read_json

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]


def make_run(folder: Path, corpus: Path, steps: int, pace_s: float) -> Path:
    """A run folder for `steps` steps of `pace_s` seconds each."""
    model = {"architecture": "transformer", "num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
    training = {"max_steps": steps, "warmup_steps": 20, "tokens_per_update": 100, "micro_batch_tokens": 100}
    training |= {"validate_every": 100, "checkpoint_every": CHECKPOINT_EVERY}
    run = write_settings(folder / "runs/test/copy/random/seed1", corpus, model, training)
    set_pace(run, pace_s)
    return run


def made(folder: Path) -> Path:
    """For the temporary files of one launcher, and the snapshot of the queue that it shares."""
    folder.mkdir(exist_ok=True)
    return folder


class Launcher:
    """A `python -m pipeline launch` of a test. The warm server forks one for Slurm, and its jobs, unless it is cold."""

    def __init__(self, run: Path, function: str, *options: str, path: str = "", cold: bool = False, **environment: str):
        self.run = run
        self.log = run / f"launcher-{time.time_ns()}.log"
        python = warm_programs() / "python" if "slurm" in options and not cold else sys.executable
        command = [python, "-m", "pipeline", "launch", "--run", str(run), "--function", function, *options]
        known = {"PYTHONPATH": f"{PROJECT}:{HERE}", "REPRISE_QUEUE_INTERVAL": "1", "TMPDIR": str(made(run / "tmp"))}
        variables = os.environ | known | {"PATH": path + os.environ["PATH"]} | environment
        with open(self.log, "wb") as log:
            place = {"cwd": PROJECT, "env": variables, "start_new_session": True}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **place)

    def wait(self) -> int:
        """The exit code; fails the test when patience runs out."""
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still waiting after {PATIENCE_S} s:\n{self.text()[-3000:]}")

    def succeed(self) -> None:
        """Wait for exit code 0."""
        assert self.wait() == 0, self.text()

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        """Kill the launcher and its unfinished job, if they are still there."""
        if self.process.poll() is None:
            self.kill()
            self.process.wait()
        record = read_submission(self.run)
        if record and record.launcher == "slurm" and record.job and not (self.run / "done.json").exists():
            subprocess.run(["scancel", "--quiet", record.job], check=False)


class Bench:
    """A folder for the runs of one scenario, and launchers to put them through."""

    def __init__(self, folder: Path, corpus: Path, launch: Callable[..., Launcher]):
        self.folder, self.corpus, self.launch = folder, corpus, launch

    def new_run(self, steps: int, pace_s: float = 0.01) -> Path:
        """A run folder beside those made before."""
        return make_run(self.folder / f"run{len(list(self.folder.glob('run*')))}", self.corpus, steps, pace_s)


def weights_digest(run: Path) -> str:
    return read_json(run / "done.json")["weights_digest"]

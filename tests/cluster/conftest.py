"""A Slurm of our own for the tests marked `cluster`, and runs to put through it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
SCRIPT = HERE / "slurm.sh"


@pytest.fixture(scope="session")
def slurm(tmp_path_factory) -> Iterator[None]:
    """Slurm is up on this machine; installed and started when it was not, and then stopped at the end."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("needs root on Debian or Ubuntu, to install and start a Slurm")
    was_up = subprocess.run(["sinfo"], capture_output=True).returncode == 0 if shutil.which("sinfo") else False
    if not was_up:
        installed = subprocess.run([SCRIPT, "install"], capture_output=True, text=True)
        if installed.returncode:
            pytest.skip(f"Slurm can't be installed: {installed.stderr.strip()[-300:]}")
        subprocess.run([SCRIPT, "start"], check=True, capture_output=True)
    yield
    if not was_up:
        subprocess.run([SCRIPT, "stop"], check=True, capture_output=True)


def make_run(folder: Path, steps: int, pace_s: float = 0.05) -> Path:
    """A run folder of the toy job, with the small corpus record that its key needs."""
    corpus = folder / "corpus"
    run = folder / "runs" / "toy" / "counter" / "none" / "seed1"
    corpus.mkdir(parents=True)
    run.mkdir(parents=True)
    (corpus / "corpus.json").write_text(json.dumps({"digest": "0" * 64}))
    (run / "pace").write_text(str(pace_s))
    spec = f"""
        {{paper: toy, system: counter, dataset: none, scale: smoke, seed: 1, corpus: "{corpus}",
        model: {{architecture: transformer, num_layers: 1, d_model: 8, d_ff: 8, num_heads: 1}},
        training: {{max_steps: {steps}, warmup_steps: 1, tokens_per_update: 1,
                    validate_every: 1, checkpoint_every: 1}}}}
    """
    (run / "run.yaml").write_text(spec)
    return run


class Launcher:
    """A `python -m pipeline launch` of a test, ended with it."""

    def __init__(self, run: Path, *options: str, function: str = "toy:count_steps", path: str = ""):
        self.run = run
        self.log = run / f"launcher-{time.time_ns()}.log"
        command = [sys.executable, "-m", "pipeline", "launch", "--run", str(run), "--function", function]
        environment = os.environ | {
            "PYTHONPATH": f"{PROJECT}:{HERE}",
            "REPRISE_QUEUE_INTERVAL": "1",
            "XDG_CACHE_HOME": str(run / "cache"),
            "PATH": path + os.environ["PATH"],
        }
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, *options], stdout=log, stderr=log, env=environment, cwd=PROJECT, start_new_session=True
            )

    def wait(self, seconds: float) -> int:
        """The exit code; fails the test when it takes longer."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still waiting after {seconds} s:\n{self.text()[-3000:]}")

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(number)


@pytest.fixture
def launch() -> Iterator[Callable[..., Launcher]]:
    """Start launchers; those still there at the end of the test are killed, and so are their jobs."""
    started: list[Launcher] = []

    def start(run: Path, *options: str, **settings: str) -> Launcher:
        started.append(Launcher(run, *options, **settings))
        return started[-1]

    yield start
    for launcher in started:
        if launcher.process.poll() is None:
            launcher.kill()
            launcher.process.wait()
        record = launcher.run / "job.json"
        job = json.loads(record.read_text()) if record.exists() else {}
        if job.get("launcher") == "slurm" and job["job"] and not (launcher.run / "done.json").exists():
            subprocess.run(["scancel", "--quiet", job["job"]], check=False)


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Poll until `condition()` is true; fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {seconds} s")
        time.sleep(0.05)

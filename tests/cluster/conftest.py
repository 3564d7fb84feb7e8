"""A Slurm of our own for the tests marked `cluster`, and what they launch."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from launching import Launcher, make_run, write_corpus

SCRIPT = Path(__file__).resolve().with_name("slurm.sh")


@pytest.fixture(scope="session")
def slurm() -> Iterator[None]:
    """Slurm is up on this machine; installed and started when it was not, and then stopped at the end."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("needs root on Debian or Ubuntu, to install and start a Slurm")
    if shutil.which("sinfo") and subprocess.run(["sinfo"], capture_output=True).returncode == 0:
        yield
        return
    installed = subprocess.run([SCRIPT, "install"], capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"Slurm can't be installed: {installed.stderr.strip()[-300:]}")
    subprocess.run([SCRIPT, "start"], check=True, capture_output=True)
    yield
    subprocess.run([SCRIPT, "stop"], check=True, capture_output=True)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus") / "copy")


@pytest.fixture
def new_run(tmp_path, corpus) -> Callable[..., Path]:
    """Makes the test's run folder."""

    def make(steps: int, pace_s: float = 0.01) -> Path:
        return make_run(tmp_path, corpus, steps, pace_s)

    return make


def launchers() -> Iterator[Callable[..., Launcher]]:
    """Start launchers of the toy job; those still there at the end are killed, and so are their jobs."""
    started: list[Launcher] = []

    def start(run: Path, *options: str, function: str = "toy_job:count_steps", **settings: str) -> Launcher:
        started.append(Launcher(run, function, *options, **settings))
        return started[-1]

    yield start
    for launcher in started:
        launcher.end()


launch = pytest.fixture(launchers)
launch_in_module = pytest.fixture(scope="module")(launchers)

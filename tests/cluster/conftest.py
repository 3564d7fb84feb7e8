"""A Slurm of our own for the tests marked `cluster`, and what they launch."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from copy_corpus import write_copy_corpus
from launching import Bench, Launcher, make_run
from own_slurm import LOCK, SCRIPT

Scenario = Callable[[Bench], None]


@pytest.fixture(scope="module")
def slurm() -> Iterator[None]:
    """Our Slurm is up here, for one module of tests at a time; stopped afterwards unless it was up before."""
    require("slurmctld")
    with alone():
        was_up = subprocess.run([SCRIPT, "status"], capture_output=True).returncode == 0
        begin()
        yield
        if not was_up:
            subprocess.run([SCRIPT, "stop"], check=True, capture_output=True)


@pytest.fixture(scope="module")
def slurm_with_accounts() -> Iterator[None]:
    """The same with an accounting database, and limits."""
    require("slurmctld", "slurmdbd", "mariadbd")
    with alone():
        subprocess.run([SCRIPT, "stop"], check=True, capture_output=True)
        begin("accounting")
        yield
        subprocess.run([SCRIPT, "stop"], check=True, capture_output=True)


@pytest.fixture(autouse=True)
def signals_as_in_a_terminal() -> Iterator[None]:
    """Let launched programs obey SIGINT and SIGHUP, which they would ignore as in the background or under nohup."""
    ignored = [number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def require(*programs: str) -> None:
    if any(shutil.which(program) is None for program in programs):
        pytest.skip(f"Slurm is not installed; as root, on Debian or Ubuntu: {SCRIPT} install")
    if os.geteuid() != 0:
        pytest.skip("only root can start Slurm's daemons")


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Keeps other workers of pytest-xdist waiting, and lets this one's programs find the Slurm."""
    with open(LOCK, "w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        patch.delenv("SLURM_CONF")
        yield


def begin(*options: str) -> None:
    started = subprocess.run([SCRIPT, "start", *options], capture_output=True, text=True)
    assert started.returncode == 0, started.stderr


@pytest.fixture(scope="session")
def corpus(tmp_path_factory) -> Path:
    return write_copy_corpus(tmp_path_factory.mktemp("corpus") / "copy", train=400, dev=20)


@pytest.fixture
def new_run(tmp_path, corpus) -> Callable[..., Path]:
    return lambda steps, pace_s=0.01: make_run(tmp_path, corpus, steps, pace_s)


def launchers() -> Iterator[Callable[..., Launcher]]:
    """Start launchers of the toy job; those still there at the end are killed, and so are their jobs."""
    started: list[Launcher] = []

    def start(run: Path, *options: str, function: str = "toy_job:count_steps", **settings: str | bool) -> Launcher:
        started.append(Launcher(run, function, *options, **settings))
        return started[-1]

    yield start
    for launcher in started:
        launcher.end()


launch = pytest.fixture(launchers)
launch_in_module = pytest.fixture(scope="module")(launchers)


@pytest.fixture(scope="module")
def begun(request, corpus, launch_in_module, tmp_path_factory) -> Iterator[dict[Scenario, Future]]:
    """Begin the selected scenarios of a module at once, each in a thread; nearly all the time they wait for Slurm."""
    tests = [item for item in request.session.items if item.path == request.path]
    with ThreadPoolExecutor(len(tests)) as pool:
        scenarios = [test.callspec.params["scenario"] for test in tests]
        benches = [Bench(tmp_path_factory.mktemp(s.__name__), corpus, launch_in_module) for s in scenarios]
        yield {scenario: pool.submit(scenario, bench) for scenario, bench in zip(scenarios, benches, strict=True)}

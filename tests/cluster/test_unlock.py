"""A lock is released only when its holder is surely dead."""

import argparse
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.records.jobs import Driver
from reprise.status import unlock


@pytest.fixture
def locked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake" / "locks").mkdir(parents=True)
    (tmp_path / ".snakemake" / "locks" / "0.output.lock").touch()
    released = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: released.append(command))
    return released


def dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_lock_of_a_dead_driver_is_released(locked):
    Driver(host=socket.gethostname(), pid=dead_pid(), job=None).write(unlock.DRIVER)
    unlock.run(argparse.Namespace(force=False))
    assert locked == [[sys.executable, "-m", "snakemake", "--unlock"]]


def test_lock_of_a_living_driver_is_kept(locked):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "snakemake"])
    Driver(host=socket.gethostname(), pid=process.pid, job=None).write(unlock.DRIVER)
    try:
        with pytest.raises(UserError, match=f"process {process.pid}"):
            unlock.run(argparse.Namespace(force=False))
    finally:
        process.kill()
        process.wait()
    assert not locked


SLEEPS = f"{sys.executable} -c 'import time; time.sleep(20)'"


@pytest.mark.parametrize("own_group", [True, False])
def test_what_ends_a_driver_is_said_and_ends_it_in_the_background_of_a_script_too(locked, own_group):
    """There SIGINT is ignored; in a group of its own its jobs get the signal, too."""
    begin = f"exec {SLEEPS} snakemake" if own_group else f"{SLEEPS} snakemake & echo $!; exec >&-; wait"
    script = f"{SLEEPS} job & echo $!; {begin}" if own_group else begin
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as process:
        other = int(process.stdout.readline())
        driver = process.pid if own_group else other
        while not unlock.drives(driver):
            time.sleep(0.01)
        Driver(host=socket.gethostname(), pid=driver, job=None).write(unlock.DRIVER)
        with pytest.raises(UserError, match="end it first") as raised:
            unlock.run(argparse.Namespace(force=False))
        command = re.search(r"\((kill [-\d ]+)", str(raised.value))[1]
        assert os.system(command) == 0
        process.wait(10)
    deadline = time.monotonic() + 10
    while any(map(is_alive, (driver, other))):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    unlock.run(argparse.Namespace(force=False))
    assert locked


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_pid_of_another_program_does_not_count(locked):
    Driver(host=socket.gethostname(), pid=os.getppid(), job=None).write(unlock.DRIVER)
    if not unlock.drives(os.getppid()):
        unlock.run(argparse.Namespace(force=False))
        assert locked


@pytest.mark.parametrize("machine", [None, "another start or another container"])
def test_driver_on_another_machine_is_taken_for_alive_until_told_otherwise(machine, locked):
    Driver(host="elsewhere", pid=1, job=None, machine=machine).write(unlock.DRIVER)
    with pytest.raises(UserError, match=r"on elsewhere; run this command there or, .* here with --force"):
        unlock.run(argparse.Namespace(force=False))
    unlock.run(argparse.Namespace(force=True))
    assert locked


def test_a_machine_that_has_another_name_now_is_known_again(locked, monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "snakemake"])
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: process.pid)
        unlock.record_driver()
    monkeypatch.setattr(socket, "gethostname", lambda: "renamed")
    with pytest.raises(UserError, match=f"on this machine as process {process.pid}"):
        unlock.run(argparse.Namespace(force=True))
    process.kill()
    process.wait()
    unlock.run(argparse.Namespace(force=False))
    assert locked


@pytest.mark.parametrize(("state", "alive"), [("RUNNING", True), ("COMPLETED", False), ("PENDING", False)])
def test_driver_that_was_a_job_is_looked_up_in_slurm(locked, monkeypatch, state, alive):
    monkeypatch.setattr(unlock, "ask_slurm", lambda: [["12", state, "None", "n1", "reprise-driver"]])
    Driver(host="elsewhere", pid=1, job="12").write(unlock.DRIVER)
    if alive:
        with pytest.raises(UserError, match="scancel 12"):
            unlock.run(argparse.Namespace(force=False))
    else:
        unlock.run(argparse.Namespace(force=False))
    assert bool(locked) is not alive


def test_own_earlier_life_of_a_requeued_driver_is_dead(locked, monkeypatch):
    monkeypatch.setattr(unlock, "ask_slurm", lambda: [["12", "RUNNING", "None", "n1", "reprise-driver"]])
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    Driver(host="elsewhere", pid=1, job="12").write(unlock.DRIVER)
    unlock.run(argparse.Namespace(force=False))
    assert locked


def test_unknown_driver_is_left_to_the_user(locked):
    with pytest.raises(UserError, match="snakemake --unlock"):
        unlock.run(argparse.Namespace(force=False))


def test_nothing_happens_without_a_lock(locked):
    for path in unlock.DRIVER.parent.glob("locks/*"):
        path.unlink()
    unlock.run(argparse.Namespace(force=False))
    assert not locked


def test_who_drives_is_forgotten_by_himself_alone(locked):
    unlock.record_driver()
    own = Driver.read(unlock.DRIVER)
    assert own.pid == os.getpid()
    for other in ({"pid": 1}, {"machine": "another"}):
        own.model_copy(update=other).write(unlock.DRIVER)
        unlock.forget_driver()
        assert unlock.DRIVER.exists()
    own.write(unlock.DRIVER)
    unlock.forget_driver()
    assert not unlock.DRIVER.exists()

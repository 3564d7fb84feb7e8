"""Files of a driver are free only once it is surely dead; others make other files beside it."""

import atexit
import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from time_limit import until

from pipeline.core.errors import UserError
from pipeline.workflow import drivers
from pipeline.workflow.drivers import DRIVERS, Driver, read_drivers, register_driver, unregister_driver
from reprise.cli import unlock


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "workflow/papers").mkdir(parents=True)
    (tmp_path / "config.yaml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(atexit, "register", lambda function, **options: None)
    for name in ("SLURM_JOB_ID", "SLURM_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)


def note(pid: int, host: str | None = None, makes: tuple[str, ...] = ("x",), **known: str | int) -> None:
    """Register a driver, by default of this machine."""
    facts = {"job": None, "machine": None, "began": 0.0, "makes": list(map(os.path.abspath, makes))}
    driver = Driver(host=host or socket.gethostname(), pid=pid, **(facts | known))
    driver.write(DRIVERS / f"{driver.host}-{pid}.json")


def pids() -> list[int]:
    return [driver.pid for driver in read_drivers().values()]


def dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@contextlib.contextmanager
def living():
    """The number of a process that is called as snakemake is."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "snakemake"])
    while not drivers.is_snakemake_process(process.pid):
        time.sleep(0.01)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def pid():
    """Return the number of such a process, which lives as long as the test."""
    with living() as number:
        yield number


EARLIER_START = {"machine": "an-earlier-start pid:[4026531836]"}


@pytest.mark.parametrize(
    ("pid_of", "known"),
    [(dead_pid, {}), (lambda: 1, {}), (os.getpid, EARLIER_START)],
    ids=["ended", "of another program", "before a reboot"],
)
def test_dead_driver_is_forgotten_and_replaced(pid_of, known, monkeypatch):
    if known:
        monkeypatch.setattr(drivers, "is_snakemake_process", lambda *_: True)
    note(pid_of(), **known)
    unlock()
    assert not read_drivers()
    note(pid_of(), **known)
    register_driver(["x"])
    assert pids() == [os.getpid()]


def test_second_driver_of_a_file_is_refused_by_whatever_path(pid):
    note(pid, makes=("a", "work/b"))
    said = f"^work/b is already being built: .* as process {pid}; wait for it, or end it first"
    for spelt in ("work/b", "work/../work/b", os.path.abspath("work/b")):
        with pytest.raises(UserError, match=said) as raised:
            register_driver([spelt, "c"])
        assert "\n" not in str(raised.value) and pids() == [pid]


def refuse(error: type[OSError]) -> None:
    raise error


@pytest.mark.parametrize(
    ("user", "answer", "is_refused"),
    [(1, PermissionError, True), (1, ProcessLookupError, False), (0, PermissionError, False)],
    ids=["hidden", "ended", "of this user"],
)
def test_driver_of_another_user_may_be_hidden_in_proc(user, answer, is_refused, monkeypatch):
    monkeypatch.setattr(os, "kill", lambda *_: refuse(answer))
    note(dead_pid(), user=os.getuid() + user)
    refused = pytest.raises(UserError, match=r"already being built: .*another user .*`reprise unlock --force`")
    with refused if is_refused else contextlib.nullcontext():
        register_driver(["x"])
    unlock(force=True)
    register_driver(["x"])


def test_drivers_of_different_files_are_registered_together(pid):
    note(pid, makes=("a",))
    note(dead_pid(), makes=("b",))
    register_driver(["b"])
    assert sorted(pids()) == sorted([pid, os.getpid()])
    unregister_driver()
    assert pids() == [pid]


def test_a_note_goes_with_its_process_from_wherever_that_ends(monkeypatch, tmp_path):
    """Snakemake goes back from its --directory before it ends."""
    ended = []
    monkeypatch.setattr(atexit, "register", lambda function, **options: ended.append((function, options)))
    register_driver(["x"])
    monkeypatch.chdir("/")
    for function, options in ended:
        function(**options)
    assert not read_drivers(tmp_path)


def test_unlock_removes_locks_and_dead_drivers_unless_one_lives():
    lock = Path(".snakemake/locks/0.input.lock")
    lock.parent.mkdir(parents=True)
    lock.touch()
    with living() as pid:
        note(pid)
        note(dead_pid())
        with pytest.raises(UserError, match=f"process {pid}"):
            unlock()
        assert lock.exists() and pids() == [pid]
    unlock()
    assert not lock.exists()


def test_two_that_begin_at_once_never_both_make_a_file(pid, monkeypatch):
    """The other one's note appears while ours is written."""
    written = Driver.write

    def write(driver: Driver, path: Path) -> None:
        written(driver, path)
        monkeypatch.setattr(Driver, "write", written)
        note(pid)

    monkeypatch.setattr(Driver, "write", write)
    with pytest.raises(UserError, match=f"process {pid}"):
        register_driver(["x"])


SLEEPS = f"{sys.executable} -c 'import time; time.sleep(20)'"


@pytest.mark.parametrize("own_group", [True, False])
def test_suggested_command_ends_a_background_driver(own_group):
    """There SIGINT is ignored; in a group of its own its jobs get the signal, too."""
    begin = f"exec {SLEEPS} snakemake" if own_group else f"{SLEEPS} snakemake & echo $!; exec >&-; wait"
    script = f"{SLEEPS} job & echo $!; {begin}" if own_group else begin
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as process:
        other = int(process.stdout.readline())
        driver = process.pid if own_group else other
        # Until then it is the shell, whose script names a snakemake, too, and for a moment nothing.
        while not Path(f"/proc/{driver}/cmdline").read_bytes().startswith(os.fsencode(sys.executable)):
            time.sleep(0.01)
        note(driver)
        with pytest.raises(UserError, match="end it first") as raised:
            unlock()
        command = re.search(r"\((kill [-\d ]+)", str(raised.value))[1]
        assert os.system(command) == 0
        process.wait(10)
    until(lambda: not any(map(is_alive, (driver, other))), "the end of the driver and its job")
    unlock()
    assert not read_drivers()


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


ELSEWHERE = r"process 1 on elsewhere; if it has ended, run .* there or, .*unlock --force` here"
BOOT = (drivers.machine_id() or "unknown").split()[0]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"host": "elsewhere", "machine": None}, ELSEWHERE),
        ({"host": "elsewhere", "machine": "another start or another container"}, ELSEWHERE),
        pytest.param(
            {"machine": f"{BOOT} pid:[1]"},
            "--force` here",
            marks=pytest.mark.skipif(BOOT == "unknown", reason="this system does not tell which start of it this is"),
        ),
        (
            {"host": "elsewhere", "job": "12", "user": os.getuid() + 1},
            "job 12 of another user .*`reprise unlock --force`",
        ),
    ],
    ids=["machine without an id", "another machine", "another container", "job of another user"],
)
def test_driver_that_cannot_be_asked_is_alive_until_forced(known, said, monkeypatch):
    monkeypatch.setattr(drivers, "query_slurm", list)
    note(1, **known)
    with pytest.raises(UserError, match=said):
        unlock()
    register_driver(["y"])
    with pytest.raises(UserError, match=f"^x is already being built: .*{said}"):
        register_driver(["x"])
    unregister_driver()
    unlock(force=True)
    assert not read_drivers()


def test_a_machine_that_has_another_name_now_is_known_again(monkeypatch):
    with living() as pid:
        with monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: pid)
            register_driver(["x"])
        monkeypatch.setattr(socket, "gethostname", lambda: "renamed")
        with pytest.raises(UserError, match=f"on this machine as process {pid}"):
            unlock(force=True)
    unlock()
    assert not read_drivers()


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        *(("RUNNING", "scancel 12"), ("COMPLETED", ""), ("PENDING", "")),
        (None, "Slurm does not say whether job 12"),
    ],
    ids=["running", "completed", "pending", "no answer"],
)
def test_driver_that_was_a_job_is_looked_up_in_slurm(monkeypatch, state, fault):
    monkeypatch.setattr(drivers, "query_slurm", lambda: state and [["12", state, "None", "n1", "reprise-driver"]])
    note(1, host="elsewhere", job="12")
    with pytest.raises(UserError, match=fault) if fault else contextlib.nullcontext():
        unlock()
    assert bool(read_drivers()) is bool(fault)


def test_requeued_driver_replaces_its_previous_start_only(monkeypatch):
    monkeypatch.setattr(drivers, "query_slurm", lambda: [["12", "RUNNING", "None", "n1", "reprise-driver"]])
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    note(1, host="elsewhere", job="12")
    with pytest.raises(UserError, match="job 12 drives the workflow on elsewhere"):
        register_driver(["x"])
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    register_driver(["x"])
    assert pids() == [os.getpid()]


def test_unlock_in_a_folder_of_the_project_is_refused(pid, monkeypatch):
    """The records of the project are not there, so nothing would seem to be locked."""
    note(pid)
    monkeypatch.chdir("workflow")
    with pytest.raises(UserError, match=r"no project here .* run `cd .*`"):
        unlock()


def test_unlock_without_a_driver_does_nothing(caplog):
    caplog.set_level("INFO")
    unlock()
    assert "nothing is locked" in caplog.text


def test_who_drives_is_forgotten_by_himself_alone():
    register_driver(["x"])
    ((path, own),) = read_drivers().items()
    for other in ({"pid": 1}, {"machine": "another"}):
        own.model_copy(update=other).write(path)
        unregister_driver()
        assert path.exists()
    own.write(path)
    unregister_driver()
    assert not path.exists()

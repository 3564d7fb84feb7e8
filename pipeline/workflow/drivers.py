"""Registry of running Snakemake processes: a file for each in .snakemake/drivers, with the files that it makes.

It replaces Snakemake's locks (`nolock` in profiles/default), because any Snakemake that ends removes the locks of all.
An entry needs no release: it is ignored once its process is gone.
"""

import atexit
import os
import socket
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from pipeline.cluster.queue import CLUSTER_VARIABLES, query_slurm
from pipeline.core.errors import UserError
from pipeline.core.records.record import Record

DRIVERS = Path(".snakemake/drivers")
OWN_JOB_VARIABLES = ("SLURM_JOB_ID", "SLURM_RESTART_COUNT", *CLUSTER_VARIABLES)
"""Slurm's variables that the processes of a job keep: those that identify it, and its cluster."""


class Driver(Record):
    """A Snakemake process of this project."""

    host: str
    pid: int
    user: int = Field(default_factory=os.getuid, description="Number of the user; earlier versions did not record it")
    job: str | None = Field(description="Slurm job that it is part of")
    restart: int = Field(default=0, description="How often Slurm had restarted that job")
    machine: str | None = Field(description="Boot id of its kernel, and its process namespace; None if unknown")
    began: float = Field(description="UNIX seconds")
    makes: list[str] = Field(description="Files, by absolute paths")


def register_driver(makes: Iterable[str]) -> None:
    """Register this process as the maker of some files until it ends.

    Raises:
        UserError: Another process, which may be alive, makes one of them.
    """
    own = Driver(
        host=socket.gethostname(),
        pid=os.getpid(),
        job=os.environ.get("SLURM_JOB_ID"),
        restart=restart_count(),
        machine=machine_id(),
        began=time.time(),
        makes=sorted(map(os.path.abspath, makes)),
    )
    note = DRIVERS.absolute() / f"{uuid.uuid4().hex}.json"  # absolute, as Snakemake may change its working directory
    own.write(note)  # before reading the others, so that two that start at once see each other
    atexit.register(note.unlink, missing_ok=True)
    others = {path: driver for path, driver in read_drivers().items() if path.absolute() != note}
    for path, driver in others.items():
        if not (reason := liveness_reason(driver)):
            path.unlink(missing_ok=True)
        elif shared := set(own.makes).intersection(driver.makes):
            note.unlink(missing_ok=True)
            raise UserError(f"{os.path.relpath(min(shared))} is already being built: {reason}")


def read_drivers(root: Path = Path()) -> dict[Path, Driver]:
    """Return the registered drivers of a project by file; some may be dead."""
    notes = {path: Driver.read_if_valid(path) for path in sorted((root / DRIVERS).glob("*.json"))}
    return {path: driver for path, driver in notes.items() if driver}


def own_files() -> list[str]:
    """Return the files that this process makes, relative to the working directory."""
    own = (driver for driver in read_drivers().values() if (driver.machine, driver.pid) == (machine_id(), os.getpid()))
    return [os.path.relpath(path) for driver in own for path in driver.makes]


def unregister_driver() -> None:
    """Remove the entry of this process."""
    for path, driver in read_drivers().items():
        if (driver.machine, driver.pid) == (machine_id(), os.getpid()):
            path.unlink(missing_ok=True)


def prune_stale(force: bool) -> tuple[list[Driver], list[str]]:
    """Remove the entries of dead drivers.

    Args:
        force: Also remove those of machines that cannot be asked.

    Returns:
        The removed drivers, and for each other driver why it may be alive.
    """
    dead, reasons = [], []
    for path, driver in read_drivers().items():
        if reason := liveness_reason(driver, force):
            reasons.append(reason)
        else:
            path.unlink(missing_ok=True)
            dead.append(driver)
    return dead, reasons


def machine_id() -> str | None:
    """Identify this boot of the kernel and the container, within which process ids are unique."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def is_on_this_machine(driver: Driver) -> bool:
    """Return whether the process of a driver would be visible here."""
    own = machine_id()
    return driver.machine == own if driver.machine and own else driver.host == socket.gethostname()


def is_from_earlier_boot(driver: Driver) -> bool:
    """Return whether this machine was rebooted since the driver started."""
    noted, own = driver.machine or "", machine_id() or ""
    return driver.host == socket.gethostname() and bool(noted and own) and noted.split()[0] != own.split()[0]


def restart_count() -> int:
    """Return how often Slurm has restarted this job."""
    return int(os.environ.get("SLURM_RESTART_COUNT") or 0)


def liveness_reason(driver: Driver, force: bool = False) -> str | None:
    """Return why a driver must be assumed alive, or None if it is surely gone.

    Args:
        driver: The registered driver.
        force: Assume that processes which cannot be asked about are gone.
    """
    host, pid, job = driver.host, driver.pid, driver.job
    if is_on_this_machine(driver):
        # With our own id it is an earlier process.
        alive = pid != os.getpid() and is_snakemake_process(pid, None if force else driver.user)
        if not alive:
            return None
        if driver.user != os.getuid():
            return (
                f"snakemake of another user runs on this machine as process {pid}; wait for it, or if that user knows "
                "that it has ended, run `reprise unlock --force`"
            )
        return f"snakemake runs on this machine as process {pid}; wait for it, or end it first ({stop_command(pid)})"
    if force or is_from_earlier_boot(driver):
        return None
    if job is None:
        return (
            f"snakemake was started as process {pid} on {host}; if it has ended, run `reprise unlock` there "
            "or, if that machine is gone or has another name now, `reprise unlock --force` here"
        )
    if driver.user != os.getuid():  # Slurm is asked for the jobs of this user, and may hide those of others
        return (
            f"job {job} of another user drives the workflow on {host}; wait for it, or if that user knows that it has "
            "ended, run `reprise unlock --force`"
        )
    jobs = query_slurm()
    if jobs is None:
        return f"Slurm does not say whether job {job} of the workflow on {host} still runs; run the command again"
    running = any(row[0] == job and row[1] in ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED") for row in jobs)
    # A restarted job replaces its earlier run under the same id.
    if running and not (job == os.environ.get("SLURM_JOB_ID") and driver.restart < restart_count()):
        return f"job {job} drives the workflow on {host}; wait for it, or end it first (scancel {job})"
    return None


def stop_command(pid: int) -> str:
    """Return a command that ends a Snakemake. SIGINT is ignored by background processes of scripts."""
    try:
        own_group = os.getpgid(pid) == pid
    except ProcessLookupError:  # it has just ended
        own_group = False
    return f"kill -- -{pid}" if own_group else f"kill {pid}, after which it waits for the jobs that run"


def is_snakemake_process(pid: int, user: int | None = None) -> bool:
    """Return whether a process of this machine is a running Snakemake; its id may have been reused.

    Many login nodes hide the processes of other users in /proc. Any process with the id counts then.

    Args:
        pid: Id of the process.
        user: Number of the user who started Snakemake; None if it was this one.
    """
    try:
        return b"snakemake" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return user not in (None, os.getuid()) and is_process_of_another_user(pid)


def is_process_of_another_user(pid: int) -> bool:
    """Return whether there is a process with this id that this user may send no signal."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        pass
    return False

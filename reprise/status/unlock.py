"""Release the lock that a killed snakemake left behind, after making sure that it is dead.

    python -m pipeline unlock
    python -m pipeline unlock --force        the machine that it ran on is gone

Looks at .snakemake/driver.json, in which the Snakefile notes who drives the workflow, and runs `snakemake --unlock` if
that process is gone. Jobs on Slurm are not touched: the next snakemake adopts them. Writes no file.
"""

import argparse
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

from pipeline.cluster.queue import ask_slurm
from pipeline.errors import UserError
from pipeline.records.jobs import Driver
from pipeline.records.record import read_note

log = logging.getLogger(__name__)

DRIVER = Path(".snakemake/driver.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="believe that a driver elsewhere is dead")


def run(args: argparse.Namespace) -> None:
    if not any(Path(".snakemake/locks").glob("*.lock")):
        log.info("nothing is locked")
        return
    if not DRIVER.exists():
        raise UserError(f"{DRIVER} is missing: if no snakemake runs in this folder, run `snakemake --unlock` yourself")
    driver = Driver.read(DRIVER)
    if reason := why_alive(driver, args.force):
        raise UserError(f"not unlocked: {reason}")
    subprocess.run([sys.executable, "-m", "snakemake", "--unlock"], check=True)


def record_driver() -> None:
    """Note that this process drives the workflow; called by the Snakefile when it begins to make files."""
    job = os.environ.get("SLURM_JOB_ID")
    Driver(host=socket.gethostname(), pid=os.getpid(), job=job, machine=machine()).write(DRIVER)


def forget_driver() -> None:
    """Of this process, which makes nothing any more."""
    noted = read_note(Driver, DRIVER)
    if noted and (noted.machine, noted.pid) == (machine(), os.getpid()):
        DRIVER.unlink(missing_ok=True)


def machine() -> str | None:
    """What process numbers are of, by whatever name: this start of the kernel, and the container if there is one."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def why_alive(driver: Driver, force: bool = False) -> str | None:
    """Why the recorded driver must be taken for alive; None when it is surely gone, or elsewhere and `force` is set."""
    host, pid, job = driver.host, driver.pid, driver.job
    if host == socket.gethostname() or (driver.machine and driver.machine == machine()):
        return f"snakemake runs on this machine as process {pid}; end it first ({ending(pid)})" if drives(pid) else None
    if force:
        return None
    if job is None:
        return (
            f"snakemake was started as process {pid} on {host}; run this command there or, if that machine is gone or "
            "was started again under another name, here with --force"
        )
    jobs = ask_slurm()
    if jobs is None:
        return f"Slurm does not say whether job {job}, which drives the workflow on {host}, still runs; try again"
    running = any(row[0] == job and row[1] in ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED") for row in jobs)
    # A driver that starts a second time under its old id may release what its first life locked.
    if running and job != os.environ.get("SLURM_JOB_ID"):
        return f"job {job} drives the workflow on {host}; end it first (scancel {job})"
    return None


def ending(pid: int) -> str:
    """What ends a snakemake: SIGINT is ignored in the background of a script. Trainings save where it reaches them."""
    try:
        own_group = os.getpgid(pid) == pid
    except ProcessLookupError:  # it has ended meanwhile
        own_group = False
    return f"kill -- -{pid}" if own_group else f"kill {pid}, after which it waits for the jobs that run"


def drives(pid: int) -> bool:
    """Whether process `pid` of this machine lives and is a snakemake: its number may have been given to another."""
    try:
        return b"snakemake" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False

"""Faults of a shared cluster. Each is over when its function returns."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from random import Random

from pipeline.core.artifacts import RunId
from qa.campaign.campaign import Campaign
from tests.cluster.own_slurm import SCRIPT, STATE
from tests.cluster.tracing import starts

NODES = ("n1", "n2")
QOS = "campaign"
Fault = Callable[[Campaign, Random], None]


def preemption(campaign: Campaign, rng: Random) -> None:
    """Preempt a whole node, so that every training on it has to stop."""
    node = rng.choice(NODES)
    options = ["--partition=high", f"--nodelist={node}", "--exclusive", "--mem=0", "--output=/dev/null"]
    submit = ["sbatch", "--parsable", *options, "--wrap=sleep 10"]
    while not (urgent := subprocess.run(submit, capture_output=True, text=True).stdout.strip()):
        time.sleep(1)  # the controller is away
    while subprocess.run(["squeue", "--noheader", "--job", urgent], capture_output=True).stdout.strip():
        time.sleep(1)


def requeue(campaign: Campaign, rng: Random) -> None:
    """Requeue a training, as an administrator may."""
    subprocess.run(["scontrol", "requeue", starts(campaign.runs[one_at_work(campaign, rng)])[-1].job], check=False)


def lost_node(campaign: Campaign, rng: Random) -> None:
    """Silence a node: its jobs start elsewhere while their old processes continue; then the node returns."""
    node = rng.choice(NODES)
    os.kill(daemon(f"slurmd.{node}"), signal.SIGKILL)
    time.sleep(25)
    subprocess.run([SCRIPT, "node", node], check=True)


def slow_node(campaign: Campaign, rng: Random) -> None:
    """Suspend the trainings of a node for a while."""
    node = rng.choice(NODES)
    pids = [line.pid for line in (starts(campaign.runs[run])[-1] for run in campaign.at_work()) if line.node == node]
    for number, pause_s in ((signal.SIGSTOP, 20), (signal.SIGCONT, 0)):
        for pid in pids:
            signal_to(pid, number)
        time.sleep(pause_s)


def controller_restart(campaign: Campaign, rng: Random) -> None:
    os.kill(daemon("slurmctld"), signal.SIGTERM)
    time.sleep(rng.uniform(3, 10))
    subprocess.run(["slurmctld"], check=True)


def driver_killed(campaign: Campaign, rng: Random) -> None:
    """Kill Snakemake and all launchers with `kill -9`; jobs on the cluster continue."""
    campaign.kill_driver()


def training_killed(campaign: Campaign, rng: Random) -> None:
    """Kill the process of a training."""
    run = one_at_work(campaign, rng)
    campaign.killed[run] += 1
    signal_to(starts(campaign.runs[run])[-1].pid, signal.SIGKILL)


def submit_limit(campaign: Campaign, rng: Random) -> None:
    """Forbid the user further jobs in the queue."""
    for limit, pause_s in ((1, 30), (-1, 0)):
        change = ["modify", "qos", QOS, "set", f"MaxSubmitJobsPerUser={limit}"]
        subprocess.run(["sacctmgr", "--immediate", "--quiet", *change], check=True, capture_output=True)
        time.sleep(pause_s)


def clock_step(campaign: Campaign, rng: Random) -> None:
    """Set back the clock of the driver and of all its jobs by an hour, for a while."""
    for offset, pause_s in (("-3600", 40), ("0", 0)):
        campaign.clock.write_text(offset)
        time.sleep(pause_s)


def full_disk(campaign: Campaign, rng: Random) -> None:
    """Fill the disk with somebody else's file for a while."""
    ballast = campaign.root / "work/ballast"
    try:
        with open(ballast, "wb") as file:
            take_all(file.fileno())
        time.sleep(15)
    finally:
        ballast.unlink()


def take_all(descriptor: int) -> None:
    """Fill a disk while others write: the space that was free a moment ago may be too much."""
    while free := os.fstatvfs(descriptor).f_bavail * os.fstatvfs(descriptor).f_frsize:
        with contextlib.suppress(OSError):
            return os.posix_fallocate(descriptor, 0, free)


def one_at_work(campaign: Campaign, rng: Random) -> RunId:
    """Return a running training; wait until there is one."""
    while not (at_work := campaign.at_work()):
        time.sleep(0.2)
    return rng.choice(at_work)


def daemon(name: str) -> int:
    return int((STATE / f"run/{name}.pid").read_text())


def signal_to(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, number)

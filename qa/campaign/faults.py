"""What befalls a campaign on somebody else's cluster. Each is over when its function returns."""

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
    """Somebody more important takes a whole node, and every training on it has to go."""
    node = rng.choice(NODES)
    options = ["--partition=high", f"--nodelist={node}", "--exclusive", "--mem=0", "--output=/dev/null"]
    submit = ["sbatch", "--parsable", *options, "--wrap=sleep 10"]
    while not (urgent := subprocess.run(submit, capture_output=True, text=True).stdout.strip()):
        time.sleep(1)  # the controller is away
    while subprocess.run(["squeue", "--noheader", "--job", urgent], capture_output=True).stdout.strip():
        time.sleep(1)


def requeue(campaign: Campaign, rng: Random) -> None:
    """An administrator puts a training back into the queue."""
    subprocess.run(["scontrol", "requeue", starts(campaign.runs[one_at_work(campaign, rng)])[-1].job], check=False)


def lost_node(campaign: Campaign, rng: Random) -> None:
    """A node falls silent, and its jobs are started elsewhere while their old processes go on; then it is back."""
    node = rng.choice(NODES)
    os.kill(daemon(f"slurmd.{node}"), signal.SIGKILL)
    time.sleep(25)
    subprocess.run([SCRIPT, "node", node], check=True)


def slow_node(campaign: Campaign, rng: Random) -> None:
    """A node's trainings stand still."""
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
    """`kill -9` of Snakemake and all launchers; jobs on the cluster go on."""
    campaign.kill_driver()


def training_killed(campaign: Campaign, rng: Random) -> None:
    """The process of a training dies without a word."""
    run = one_at_work(campaign, rng)
    campaign.killed[run] += 1
    signal_to(starts(campaign.runs[run])[-1].pid, signal.SIGKILL)


def submit_limit(campaign: Campaign, rng: Random) -> None:
    """The site lets the user have no further job in its queue."""
    for limit, pause_s in ((1, 30), (-1, 0)):
        change = ["modify", "qos", QOS, "set", f"MaxSubmitJobsPerUser={limit}"]
        subprocess.run(["sacctmgr", "--immediate", "--quiet", *change], check=True, capture_output=True)
        time.sleep(pause_s)


def clock_step(campaign: Campaign, rng: Random) -> None:
    """The clock of the driver, and of all that it submits, is set back by an hour, and right again a while later."""
    for offset, pause_s in (("-3600", 40), ("0", 0)):
        campaign.clock.write_text(offset)
        time.sleep(pause_s)


def full_disk(campaign: Campaign, rng: Random) -> None:
    """Somebody else's file takes all that was free."""
    ballast = campaign.root / "work/ballast"
    try:
        with open(ballast, "wb") as file:
            take_all(file.fileno())
        time.sleep(15)
    finally:
        ballast.unlink()


def take_all(descriptor: int) -> None:
    """Others write meanwhile: what was free a moment ago may be too much."""
    while free := os.fstatvfs(descriptor).f_bavail * os.fstatvfs(descriptor).f_frsize:
        with contextlib.suppress(OSError):
            return os.posix_fallocate(descriptor, 0, free)


def one_at_work(campaign: Campaign, rng: Random) -> RunId:
    """A training that runs; waits until there is one."""
    while not (at_work := campaign.at_work()):
        time.sleep(0.2)
    return rng.choice(at_work)


def daemon(name: str) -> int:
    return int((STATE / f"run/{name}.pid").read_text())


def signal_to(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, number)

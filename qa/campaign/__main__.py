"""Run all papers at the paper scale through a real Slurm while faults happen: `make campaign`.

Needs root, Debian or Ubuntu, and tests/cluster/slurm.sh install. Ends with a table of counts, and with status 1 if the
result differs from that of an undisturbed campaign.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from random import Random

from filelock import lock_descriptor

from pipeline.core.artifacts import Artifact
from pipeline.papers.project import load_project
from pipeline.workflow.graph import Graph
from qa.campaign import faults
from qa.campaign.project import SETTINGS, forecast, shares_of
from qa.campaign.proof import fetched_projects, prove, undisturbed
from tests.cluster.own_slurm import LOCK, SCRIPT

THRICE = (faults.driver_killed,)
TWICE = (faults.preemption, faults.requeue, faults.lost_node, faults.slow_node, faults.controller_restart)
ONCE = (faults.training_killed, faults.submit_limit, faults.clock_step, faults.full_disk)
LOOKS = 5
DISK = "3G"


@contextmanager
def slurm():
    """Start a Slurm with accounting and a QOS whose limits a fault may set, once no test uses Slurm on this machine."""
    with open(LOCK, "w") as lock:
        lock_descriptor(lock.fileno())
        yield from started()


def started():
    subprocess.run([SCRIPT, "stop"], check=True)
    subprocess.run([SCRIPT, "start", "accounting"], check=True)
    try:
        for change in (["add", "qos", faults.QOS], ["modify", "user", "root", "set", f"qos=normal,few,{faults.QOS}"]):
            subprocess.run(["sacctmgr", "--immediate", "--quiet", *change], check=False, capture_output=True)
        yield
    finally:
        subprocess.run([SCRIPT, "stop"], check=True)


@contextmanager
def small_disk(folder: Path):
    """Mount a file system of its own, which a fault may fill."""
    kept = folder.with_name("kept")
    folder.rename(kept)
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=True)
    try:
        subprocess.run(["cp", "-a", f"{kept}/.", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def reports_of(root: Path, papers: list[str]) -> tuple[Artifact, ...]:
    return tuple(Graph(load_project(root, SETTINGS)).reports(papers))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m qa.campaign", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=Random().randrange(10**6), help="seed of the moments of the faults")
    parser.add_argument("--minutes", type=float, default=15, help="forecast minutes of all trainings together")
    parser.add_argument("--folder", type=Path, help="work folder, which is kept; default: a temporary one")
    parser.add_argument("--paper", action="append", default=[], help="paper to build; may be repeated; default: all")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    folder = args.folder or Path(tempfile.mkdtemp(prefix="reprise-campaign-"))
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    calm, struck = fetched_projects(folder, shares_of(args.minutes, forecast(folder)).__getitem__)
    targets = reports_of(struck, args.paper)
    undisturbed(calm, targets)
    middle = time.monotonic()
    site = struck / "slurm/site.yaml"
    site.write_text(f"{site.read_text()}sbatch: --qos={faults.QOS}\n")
    befalling = [*THRICE * 3, *TWICE * 2, *ONCE]
    with slurm(), small_disk(struck / "work"):
        proof = prove(struck, lambda: calm, targets, befalling, LOOKS, args.seed)
    minutes = {"minutes undisturbed": (middle - began) / 60, "minutes": (time.monotonic() - middle) / 60}
    for what, count in (proof.counts | {key: f"{value:.0f}" for key, value in minutes.items()}).items():
        print(f"| {what} | {count} |")
    for problem in proof.problems:
        print(f"error: {problem}")
    return bool(proof.problems)


if __name__ == "__main__":
    sys.exit(main())

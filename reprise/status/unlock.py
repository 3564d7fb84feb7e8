"""Forget who drove the workflow, after making sure that nobody does any more.

    python -m pipeline unlock
    python -m pipeline unlock --force        the machine that it ran on is gone

Looks at .snakemake/drivers, in which each snakemake notes what it makes, and removes the notes of those that are gone.
The next snakemake does that itself, but for processes of another machine. Jobs on Slurm are not touched: it adopts
them. Locks of Snakemake's own, which an earlier version or another profile left, go too. Writes no file.
"""

import argparse
import logging
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.workflow.drivers import forget_dead

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="believe that a driver elsewhere is dead")


def run(args: argparse.Namespace) -> None:
    dead, reasons = forget_dead(args.force)
    for driver in dead:
        log.info("process %d on %s is gone: what it made may be made by another", driver.pid, driver.host)
    if reasons:
        raise UserError("\n".join(f"not unlocked: {reason}" for reason in reasons))
    for lock in (locks := list(Path(".snakemake/locks").glob("*.lock"))):
        lock.unlink(missing_ok=True)
        log.info("%s is removed", lock)
    if not (dead or locks):
        log.info("nothing is locked")

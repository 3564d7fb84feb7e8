"""The command `unlock`: remove the records of a Snakemake that was killed."""

import logging
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.workflow.drivers import prune_stale

log = logging.getLogger(__name__)


def unlock(*, force: bool = False) -> None:
    """Remove the records of a killed Snakemake, unless another one is running.

        reprise unlock
        reprise unlock --force        the machine that it ran on is gone

    Each running Snakemake records its targets in .snakemake/drivers. This command removes the records of processes
    that ended. The next Snakemake does so itself, except for processes of another machine. Jobs on Slurm are not
    touched: Snakemake adopts them. Snakemake's own locks are removed, too. Writes no file.

    Args:
        force: Assume that a driver on another machine is dead.
    """
    dead, reasons = prune_stale(force)
    for driver in dead:
        log.info("process %d on %s is gone: what it made may be made by another", driver.pid, driver.host)
    if reasons:
        raise UserError("\n".join(f"not unlocked: {reason}" for reason in reasons))
    for lock in (locks := list(Path(".snakemake/locks").glob("*.lock"))):
        lock.unlink(missing_ok=True)
        log.info("%s is removed", lock)
    if not (dead or locks):
        log.info("nothing is locked")

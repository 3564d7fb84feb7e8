"""Have a job done, wherever it runs, and wait for its end; adopt it when it runs already.

    python -m pipeline launch --run work/demo/runs/attention/base/demo-en-de/seed1 --launcher slurm \\
        --cpus 2 --mem-mb 4000 --runtime-min 60 --sbatch='--partition=low' --out trained.json

Writes --out, a copy of the run folder's done.json, last. The job itself writes to the run folder: checkpoints,
done.json or failed.json, starts.jsonl, its log (on Slurm: slurm/ID/ID_0_log.out). This process may be killed at any
time: the same command waits for the same job again. A job that is stopped by the cluster goes on by itself; one that
fails by its own fault, or that is cancelled, ends this process with exit code 1 and the reason.
"""

import argparse
import logging
import os
import shutil
import signal
import sys
from pathlib import Path

from pipeline.cluster.job import JobOrder, perform
from pipeline.cluster.local import LocalJobs
from pipeline.cluster.markers import is_done
from pipeline.cluster.queue import Queue
from pipeline.cluster.resources import add_resource_arguments, resources_from
from pipeline.cluster.slurm import SlurmJobs
from pipeline.cluster.version import code_digest
from pipeline.cluster.wait import Jobs, Waiter
from pipeline.errors import UserError
from pipeline.files import atomic_write
from pipeline.training.key import run_key

log = logging.getLogger(__name__)

LAUNCHERS = ("slurm", "local", "debug")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", dest="run_folder", type=Path, required=True, help="run folder, holding run.yaml")
    parser.add_argument("--out", type=Path, help="copy of the finished run's done.json")
    parser.add_argument("--launcher", choices=LAUNCHERS, default="local", help="where (default: %(default)s)")
    parser.add_argument(
        "--function",
        default="pipeline.training.job:train_run",
        help="module:function of one path, the run folder (default: %(default)s)",
    )
    parser.add_argument(
        "--queue-interval",
        type=float,
        default=float(os.environ.get("REPRISE_QUEUE_INTERVAL", "60")),
        help="shortest time between two squeue queries of all launchers together, seconds (default: %(default)g)",
    )
    add_resource_arguments(parser)


def run(args: argparse.Namespace) -> None:
    folder = args.run_folder
    key = run_key(folder)
    order = JobOrder(args.function, str(folder.resolve()), key, args.gpus, code_digest())
    if not is_done(folder, key):
        if args.launcher == "debug":
            perform(order.function, folder, key)
        else:
            watch(Waiter(folder, key, jobs_of(args, order)))
    if not is_done(folder, key):
        raise UserError(f"{folder}: {args.function} returned without writing done.json")
    if args.out:
        with atomic_write(args.out, "wb") as target, open(folder / "done.json", "rb") as source:
            shutil.copyfileobj(source, target)


def jobs_of(args: argparse.Namespace, order: JobOrder) -> Jobs:
    """Where the run's jobs are: on Slurm or here."""
    resources = resources_from(args)
    if args.launcher == "local":
        return LocalJobs(args.run_folder, order, resources.tasks, resources.cpus)
    if shutil.which("sbatch") is None:
        raise UserError("--launcher slurm: there is no sbatch on this machine; use --launcher local, or a login node")
    return SlurmJobs(args.run_folder, order, resources, Queue(cache_folder(), args.queue_interval))


class Detached(BaseException):
    """This process was told to end; the job was not."""


def watch(waiter: Waiter) -> None:
    """Wait, and on a signal say what goes on without us (raises SystemExit with 128 + signal)."""

    def detach(number: int, frame: object) -> None:
        for again in (signal.SIGINT, signal.SIGTERM):
            signal.signal(again, signal.SIG_DFL)
        raise Detached(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, detach)
    try:
        waiter.wait()
    except Detached as signalled:
        waiter.detach()
        sys.exit(128 + signalled.args[0])


def cache_folder() -> Path:
    """A folder of this user's own, the same for all his launchers."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reprise"

"""Have a job done, wherever it runs, and wait for its end; adopt it when it runs already.

    python -m pipeline launch --run work/demo/runs/attention/base/grammar-en-de/seed1-… --launcher slurm \\
        --cpus 2 --mem-mb 4000 --runtime-min 60 --sbatch='--partition=low' --out trained.json
    python -m pipeline launch --folder jobs/test --makes test.tok --launcher slurm --gpus 1 --mem-mb 8000 \\
        -- translate --weights model.safetensors --split test --out test.tok

The first form trains a run and writes --out, a copy of its done.json, last. The second has any stage done, which
makes the files named by --makes. In the folder lie the job's done.json or failed.json, starts.jsonl, its log (on Slurm:
slurm/ID_0_log.out), and a run's checkpoints. This process may be killed at any time: the same command waits for the
same job again. A job that is stopped by the cluster goes on by itself; one that fails by its own fault, or that is
cancelled, ends this process with exit code 1 and the reason.

With --together the folder lies in `jobs/` of a run, and all that is ordered there (orders.py) is done in one job, that
of the run's training while it lives.
"""

import argparse
import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.cluster.cards import take_cards
from pipeline.cluster.command import job_key, order_command
from pipeline.cluster.job_process import JobOrder, perform
from pipeline.cluster.local import LocalJobs
from pipeline.cluster.markers import is_done, read_failure, read_submission
from pipeline.cluster.orders import TOGETHER
from pipeline.cluster.queue import Queue
from pipeline.cluster.resources import add_resource_arguments, resources_from
from pipeline.cluster.slurm import SlurmJobs
from pipeline.cluster.version import code_digest
from pipeline.cluster.wait import Jobs, Waiter
from pipeline.core.disk import own_folder
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.layout import DONE_FILE
from pipeline.core.records.jobs import Command
from pipeline.stages import perform as perform_stage

log = logging.getLogger(__name__)

LAUNCHERS, TRAIN = ("slurm", "local", "debug"), "pipeline.training.job:train_run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", dest="run_folder", type=Path, help="folder of the run to train, holding run.yaml")
    what.add_argument("--folder", type=Path, help="folder of the files about another stage's job")
    parser.add_argument("command", nargs="*", metavar="-- STAGE …", help="that stage and its arguments")
    parser.add_argument("--makes", type=Path, nargs="+", action="extend", default=[], help="files that it writes")
    parser.add_argument(
        "--together", action="store_true", help="in one job with what else is ordered beside the folder; needs --reads"
    )
    parser.add_argument("--reads", type=Path, nargs="+", default=[], help="files that have to be there before")
    parser.add_argument("--out", type=Path, help="copy of the finished run's done.json")
    parser.add_argument("--launcher", choices=LAUNCHERS, default="local", help="where (default: %(default)s)")
    parser.add_argument("--function", default=TRAIN, help="module:function of a run folder (default: %(default)s)")
    interval = float(os.environ.get("REPRISE_QUEUE_INTERVAL", "60"))
    about = "seconds between two squeue queries of all launchers together, at least (default: %(default)g)"
    parser.add_argument("--queue-interval", type=float, default=interval, help=about)
    add_resource_arguments(parser)


def run(args: argparse.Namespace) -> None:
    if args.run_folder:
        if args.command:
            raise UserError(f"launch --run trains a run; use --folder to have {args.command[0]!r} done")
        done = have_done(args, args.run_folder, args.function)
        if args.out:
            with atomic_write(args.out, "wb") as target, open(done, "rb") as source:
                shutil.copyfileobj(source, target)
    elif not args.command:
        raise UserError("launch --folder: name the stage after `--`, e.g. `-- translate --weights …`")
    elif args.launcher == "slurm" and args.together:
        have_order_done(args)
    elif args.launcher == "slurm":
        order_command(args.folder, args.command, args.makes)
        have_done(args, args.folder, "pipeline.cluster.command:perform_command")
    else:
        take_cards(args.gpus)
        perform_stage(args.command)  # nothing to adopt, and nothing saved on the way: no process of its own


def have_done(args: argparse.Namespace, folder: Path, function: str) -> Path:
    """Wait until `function` has done what `folder` is for; returns its done.json. Raises UserError when it fails."""
    key = job_key(folder)
    order = JobOrder(function, str(folder.resolve()), key, args.gpus, code_digest())
    if not is_done(folder, key):
        if args.launcher == "debug":
            perform(order.function, folder, key)
        else:
            watch(Waiter(folder, key, jobs_of(args, folder, order)))
    if not is_done(folder, key):
        raise UserError(f"{folder}: {function} returned without writing done.json")
    return folder / DONE_FILE


def have_order_done(args: argparse.Namespace) -> None:
    """Wait until an order is done: in the job of its run's training, in one that does orders, or in a new one.

    Raises:
        UserError: it failed, or nothing did it.
    """
    folder, together, queue = args.folder, args.folder.parent, Queue(args.queue_interval)
    key = order_command(folder, args.command, args.makes, args.reads).key
    with alone(together):  # one submits, those that come later find what they want done
        if settled(folder, key) or beside_training(together.parent, queue, lambda: settled(folder, key)):
            return
        for _ in range(2):  # a job that is found may be at its end
            Command(key=TOGETHER, arguments=[], outputs=[]).write(together / "command.json")
            (together / DONE_FILE).unlink(missing_ok=True)
            have_done(args, together, "pipeline.cluster.orders:do_orders")
            if settled(folder, key):
                return
    raise UserError(f"{folder}: was not done, as something that it reads is not there, or changed meanwhile")


def settled(folder: Path, key: str) -> bool:
    """Whether an order is done. Raises UserError, once, when it failed."""
    if failure := read_failure(folder, key):
        (folder / "failed.json").unlink(missing_ok=True)
        raise UserError(f"{folder}: job {failure.job} failed on {failure.node}: {failure.error}")
    return is_done(folder, key)


def beside_training(run: Path, queue: Queue, is_settled: Callable[[], bool]) -> bool:
    """Wait while the job of a run's training lives: it does the orders, too. Returns whether this one was settled."""
    note, begun = read_submission(run), time.monotonic()
    while note and note.launcher == "slurm" and note.job:
        job = queue.look_up(note.job, begun)
        if is_settled() or (job and job.is_over):
            break
        time.sleep(min(1.0, queue.interval_s))
    return is_settled()


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Of the launchers of this machine, by a lock that ends with its process."""
    name = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    with open(own_folder() / f"{name}.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def jobs_of(args: argparse.Namespace, folder: Path, order: JobOrder) -> Jobs:
    """Where the jobs are: on Slurm or here."""
    resources = resources_from(args)
    if args.launcher == "local":
        take_cards(args.gpus)
        return LocalJobs(folder, order, resources.tasks, resources.cpus)
    if shutil.which("sbatch") is None:
        raise UserError("there is no sbatch on this machine; leave out --profile slurm, or go to a login node of Slurm")
    return SlurmJobs(folder, order, resources, Queue(args.queue_interval))


class Detached(BaseException):
    """This process was asked to end; the job was not."""


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

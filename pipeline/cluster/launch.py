"""Have a job done, wherever it runs, and wait for its end; adopt it when it runs already.

    python -m pipeline launch --run work/demo/runs/attention/base/grammar-en-de/seed1-… --launcher slurm \\
        --cpus 2 --mem-mb 4000 --runtime-min 60 --sbatch='--partition=low'
    python -m pipeline launch --folder jobs/test --makes test.tok --launcher slurm --gpus 1 --mem-mb 8000 \\
        -- translate --weights model.safetensors --split test --out test.tok

The first form trains a run, after writing its run.yaml with --spec. The second has any stage done, which
makes the files named by --makes. In the folder lie the job's done.json or failed.json, starts.jsonl, its log (on Slurm:
slurm/ID_0_log.out), and a run's checkpoints. This process may be killed at any time: the same command waits for the
same job again. A job that is stopped by the cluster goes on by itself; one that fails by its own fault, or that is
cancelled, ends this process with exit code 1 and the reason.

A stage that can tell that nothing is left to do (its module has `is_complete`) is done here then, without a job. With
--beside RUN the job of that run's training is waited for first: at its end it does the same work.
"""

import argparse
import logging
import os
import pkgutil
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pipeline.cluster.cards import take_cards
from pipeline.cluster.command import job_key, order_command
from pipeline.cluster.job_process import JobOrder, perform
from pipeline.cluster.local import LocalJobs
from pipeline.cluster.markers import is_done, read_submission
from pipeline.cluster.queue import Queue
from pipeline.cluster.resources import add_resource_arguments, resources_from
from pipeline.cluster.slurm import SlurmJobs
from pipeline.cluster.version import code_digest
from pipeline.cluster.wait import Jobs, Waiter
from pipeline.core.errors import UserError
from pipeline.core.files import made
from pipeline.core.layout import DONE_FILE
from pipeline.stages import parse
from pipeline.stages import perform as perform_stage
from pipeline.training.specification import write_specification

log = logging.getLogger(__name__)

LAUNCHERS, TRAIN = ("slurm", "local", "debug"), "pipeline.training.job:train_run"
DECODE = "pipeline.outputs.after_training:decode_ready"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", dest="run_folder", type=Path, help="folder of the run to train, holding run.yaml")
    what.add_argument("--folder", type=Path, help="folder of the files about another stage's job")
    parser.add_argument("command", nargs="*", metavar="-- STAGE …", help="that stage and its arguments")
    parser.add_argument("--makes", type=Path, nargs="+", action="extend", default=[], help="files that it writes")
    parser.add_argument("--beside", type=Path, metavar="RUN", help="run whose training job may do the same at its end")
    parser.add_argument("--spec", metavar="JSON", help="the run's specification, written to its run.yaml")
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
        if args.spec:
            write_specification(args.run_folder, args.spec)
        made(have_done(args, args.run_folder, args.function, DECODE if args.function == TRAIN else ""))
    elif not args.command:
        raise UserError("launch --folder: name the stage after `--`, e.g. `-- translate --weights …`")
    elif is_complete(args):
        perform_stage(args.command)
    elif args.launcher == "slurm":
        order_command(args.folder, args.command, args.makes)
        have_done(args, args.folder, "pipeline.cluster.command:perform_command")
    else:
        take_cards(args.gpus)
        perform_stage(args.command)  # nothing to adopt, and nothing saved on the way: no process of its own


def is_complete(args: argparse.Namespace) -> bool:
    """Return whether a stage says that nothing is left to do, at the latest when the job of its run's training ends."""
    stage = parse(args.command)
    asks = getattr(stage.stage_module, "is_complete", None)
    if asks is None:
        return False
    if args.launcher == "slurm" and args.beside:
        wait_for_training(args.beside, Queue(args.queue_interval), lambda: asks(stage))
    if asks(stage):
        return True
    (args.folder / DONE_FILE).unlink(missing_ok=True)  # of a job that made what is there no more
    return False


def wait_for_training(run: Path, queue: Queue, is_done_already: Callable[[], bool]) -> None:
    """Wait until the job of a run's training has ended or has made everything."""
    note, begun = read_submission(run), time.monotonic()
    while note and note.launcher == "slurm" and note.job and not is_done_already():
        job = queue.look_up(note.job, begun)
        if job and job.is_over:
            return
        time.sleep(min(10.0, queue.interval_s))  # each look hashes what was made


def have_done(args: argparse.Namespace, folder: Path, function: str, then: str = "") -> Path:
    """Wait until `function` has done what `folder` is for; return its done.json.

    Args:
        then: What the job calls after that, without being waited for on Slurm.

    Raises:
        UserError: The job failed.
    """
    key = job_key(folder)
    order = JobOrder(function, str(folder.resolve()), key, args.gpus, code_digest(), then)
    if not is_done(folder, key):
        if args.launcher == "debug":
            perform(order.function, folder, key)
            if then:
                pkgutil.resolve_name(then)(folder)
        else:
            watch(Waiter(folder, key, jobs_of(args, folder, order)))
    if not is_done(folder, key):
        raise UserError(f"{folder}: {function} returned without writing done.json")
    return folder / DONE_FILE


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

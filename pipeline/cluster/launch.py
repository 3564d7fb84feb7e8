"""Launching of jobs: on Slurm or here, waiting for their end, adopting those that run already."""

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pipeline.cluster.cards import take_cards
from pipeline.cluster.command import job_key, order_command
from pipeline.cluster.job_process import JobOrder, perform
from pipeline.cluster.local import LocalJobs
from pipeline.cluster.markers import is_done, read_failure, read_submission
from pipeline.cluster.orders import TOGETHER
from pipeline.cluster.queue import Queue
from pipeline.cluster.resources import ResourceOptions
from pipeline.cluster.slurm import SlurmJobs
from pipeline.cluster.version import code_digest
from pipeline.cluster.wait import Jobs, Waiter
from pipeline.core.command_line import Argument
from pipeline.core.disk import own_folder
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write
from pipeline.core.layout import DONE_FILE
from pipeline.core.records.jobs import Command
from pipeline.stages import perform as perform_stage

log = logging.getLogger(__name__)

TRAIN = "pipeline.training.job:train_run"
What = Argument[Path](exclusive="what", required=True)


def queue_interval() -> float:
    """Return the interval that REPRISE_QUEUE_INTERVAL sets, else a minute."""
    return float(os.environ.get("REPRISE_QUEUE_INTERVAL", "60"))


@dataclass(frozen=True)
class LaunchOptions(ResourceOptions):
    """Options of a launcher: where the job runs, and what it asks for.

    Attributes:
        launcher: Where the job runs.
        queue_interval: Least number of seconds between two squeue queries of all launchers together.
    """

    launcher: Literal["slurm", "local", "debug"] = "local"
    queue_interval: float = field(default_factory=queue_interval)


def launch(
    command: Annotated[tuple[str, ...], Argument(metavar="-- STAGE …")] = (),
    *,
    run: Annotated[Path | None, What] = None,
    folder: Annotated[Path | None, What] = None,
    makes: tuple[Path, ...] = (),
    together: bool = False,
    reads: tuple[Path, ...] = (),
    out: Path | None = None,
    function: str = TRAIN,
    options: LaunchOptions,
) -> None:
    """Run a job on Slurm or here, and wait until it ends.

        python -m pipeline launch --run work/demo/runs/attention/base/grammar-en-de/seed1-… --launcher slurm \\
            --cpus 2 --mem-mb 4000 --runtime-min 60 --sbatch='--partition=low' --out trained.json
        python -m pipeline launch --folder jobs/test --makes test.tok --launcher slurm --gpus 1 --mem-mb 8000 \\
            -- translate --weights model.safetensors --split test --out test.tok

    The first form trains a run and writes --out, a copy of its done.json, last. The second runs any stage, which makes
    the files named by --makes. The folder holds the job's done.json or failed.json, starts.jsonl, its log (on Slurm:
    slurm/ID_0_log.out), and a run's checkpoints.

    You may kill this process at any time: the same command waits for the same job again. A job that the cluster stops
    resumes by itself. A job that fails, or that is cancelled, ends this process with exit code 1 and the reason.

    With --together the folder lies in `jobs/` of a run, and all orders there (orders.py) run in one job, which is that
    of the run's training while it lives.

    Args:
        command: Stage to run, with its arguments.
        run: Folder of the run to train, with its run.yaml.
        folder: Folder of the files about another stage's job.
        makes: Files that the stage writes.
        together: Run it in one job with the other orders beside the folder. Needs --reads.
        reads: Files that must exist before.
        out: Copy of the finished run's done.json.
        function: Function of a run folder that the job calls, as module:function.
        options: Where the job runs, and what it asks for.
    """
    if run:
        if command:
            raise UserError(f"launch --run trains a run; use --folder to have {command[0]!r} done")
        done = have_done(options, run, function)
        if out:
            with atomic_write(out, "wb") as target, open(done, "rb") as source:
                shutil.copyfileobj(source, target)
        return
    assert folder
    if not command:
        raise UserError("launch --folder: name the stage after `--`, e.g. `-- translate --weights …`")
    if options.launcher == "slurm" and together:
        have_order_done(options, folder, [*command], [*makes], [*reads])
    elif options.launcher == "slurm":
        order_command(folder, [*command], [*makes])
        have_done(options, folder, "pipeline.cluster.command:perform_command")
    else:
        take_cards(options.gpus)
        perform_stage([*command])  # nothing to adopt, and nothing saved on the way: no process of its own


def have_done(options: LaunchOptions, folder: Path, function: str) -> Path:
    """Wait until `function` has done what `folder` is for; returns its done.json. Raises UserError when it fails."""
    key = job_key(folder)
    order = JobOrder(function, str(folder.resolve()), key, options.gpus, code_digest())
    if not is_done(folder, key):
        if options.launcher == "debug":
            perform(order.function, folder, key)
        else:
            watch(Waiter(folder, key, jobs_of(options, folder, order)))
    if not is_done(folder, key):
        raise UserError(f"{folder}: {function} returned without writing done.json")
    return folder / DONE_FILE


def have_order_done(
    options: LaunchOptions, folder: Path, command: list[str], makes: list[Path], reads: list[Path]
) -> None:
    """Wait until an order is done: in the job of its run's training, in one that does orders, or in a new one.

    Raises:
        UserError: it failed, or nothing did it.
    """
    together, queue = folder.parent, Queue(options.queue_interval)
    key = order_command(folder, command, makes, reads).key
    with alone(together):  # one submits, those that come later find what they want done
        if settled(folder, key) or beside_training(together.parent, queue, lambda: settled(folder, key)):
            return
        for _ in range(2):  # a job that is found may be at its end
            Command(key=TOGETHER, arguments=[], outputs=[]).write(together / "command.json")
            (together / DONE_FILE).unlink(missing_ok=True)
            have_done(options, together, "pipeline.cluster.orders:do_orders")
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


def jobs_of(options: LaunchOptions, folder: Path, order: JobOrder) -> Jobs:
    """Where the jobs are: on Slurm or here."""
    resources = options.resources()
    if options.launcher == "local":
        take_cards(options.gpus)
        return LocalJobs(folder, order, resources.tasks, resources.cpus)
    if shutil.which("sbatch") is None:
        raise UserError("there is no sbatch on this machine; leave out --profile slurm, or go to a login node of Slurm")
    return SlurmJobs(folder, order, resources, Queue(options.queue_interval))


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

"""What runs inside a job, on every task of it: check the node, claim the run, call the function, say how it ended.

The function is module-level and takes one path, the run folder. It must return at once when `done.json` carries the
run's key, write that file last, resume from its own checkpoints, and on SIGTERM or SIGUSR2 save one and raise
SystemExit(75). Before it is called RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT are
set; every task sees all GPUs of its node and takes the one numbered LOCAL_RANK.

Started by the launcher, on Slurm through submitit's pickle or here as a process of its own:

    python -m pipeline.cluster.job_process '{"function": "pipeline.training.job:train_run", "run": "work/…", …}'
"""

import contextlib
import enum
import functools
import json
import logging
import os
import pkgutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.cluster.command import job_key
from pipeline.cluster.markers import (
    is_done,
    job_name,
    newest_checkpoint,
    node_name,
    rank,
    read_starts,
    record_start,
    world_size,
    write_failure,
    write_unfit_node,
)
from pipeline.cluster.node_check import UnfitNode, check_node
from pipeline.core.errors import LostPeer, UserError
from pipeline.core.provenance import code_digest
from pipeline.core.records.jobs import StartLine
from pipeline.core.retries import retry_stage
from pipeline.training.ownership import Ownership, TakenOver

log = logging.getLogger(__name__)

REQUEUE_TRIES = 12  # 5 s apart: slurmctld may be restarting
INTERRUPTED = 128 + signal.SIGINT
FRUITLESS_STARTS = 6  # then the time limit is too short
# What a rank sees when another one died: not its own failure, and nothing that another start would meet again.
LOST_PEER = ("connection closed by peer", "connection reset by peer", "connection refused", "nccl", "broken pipe")


class Exit(enum.IntEnum):
    """How a job's process ended, as its exit code."""

    DONE = 0
    FAILED = 1
    UNFIT_NODE = 69
    STOPPED = 75  # asked to stop: a checkpoint was saved, go on later
    TAKEN_OVER = 76


@dataclass(frozen=True)
class JobOrder:
    """What a job is to do.

    Attributes:
        function: `module:name` of a module-level function of one path.
        run: the run folder.
        key: the run's key when the job was submitted.
        gpus: GPUs that this job asked for in all; 0 leaves them unchecked.
        code: digest of the package when the job was submitted.
        then: `module:name` of what the first task calls with the same path when the run is done; empty if nothing.
            It records its own failures.
    """

    function: str
    run: str
    key: str
    gpus: int
    code: str
    then: str = ""


def run_job(order: JobOrder) -> None:
    """Do what `order` says and end the process with an `Exit` code (raises SystemExit, always)."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr, force=True
    )
    signals = SignalRecord()
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, handle_stop_signal)
    signal.signal(signal.SIGCONT, signal.SIG_DFL)  # submitit logs each of them
    export_distributed()
    ended = attempt(order)
    if ended is Exit.STOPPED and "SLURM_JOB_ID" in os.environ and signals.requests_requeue:
        ended = requeue(order)
    sys.exit(ended)


def attempt(order: JobOrder) -> Exit:
    """One start of the job on this task, from the node's check to its end; never raises."""
    run = Path(order.run)
    try:
        gpu = int(os.environ.get("LOCAL_RANK", "0")) if order.gpus else None
        # A check that hangs is left by ending the process, from another thread.
        check_node(run, gpu, lambda reason: os._exit(report_unfit_node(run, reason)))
        if job_key(run) != order.key:
            log.warning("%s changed since this job was submitted: leaving it to a newer job", run)
            return Exit.TAKEN_OVER
        if code_digest() != order.code:
            log.warning("the code changed since this job was submitted")
        call_function(order.function, run, order.key)
        if order.then and rank() == 0:
            pkgutil.resolve_name(order.then)(run)
        return Exit.DONE
    except UnfitNode as error:
        return report_unfit_node(run, str(error))
    except TakenOver:
        return Exit.TAKEN_OVER
    except SystemExit as error:
        return Exit.STOPPED if error.code in (Exit.STOPPED, INTERRUPTED) else report_failure(order, error)
    except Exception as error:
        return report_failure(order, error)


def call_function(function: str, run: Path, key: str) -> None:
    """Call the function; on rank 0 as the run's one owner, with a line in `starts.jsonl` for its start and its stop."""
    if rank() > 0:
        pkgutil.resolve_name(function)(run)
        return
    ownership = Ownership(run, job_name())
    with ownership.hold():
        if is_done(run, key):
            log.info("%s is done already", run)
            return
        (run / "failed.json").unlink(missing_ok=True)
        with recorded_start(run):
            try:
                work = functools.partial(pkgutil.resolve_name(function), run)
                retry_stage(work) if world_size() == 1 else work()  # others would wait
            except SystemExit as error:
                if error.code == Exit.STOPPED and ownership.is_lost:
                    raise TakenOver from error
                raise


@contextlib.contextmanager
def recorded_start(run: Path) -> Iterator[None]:
    """Write when, where and how this start of the run began and ended."""
    line = StartLine(
        event="start",
        time=time.time(),
        job=job_name(),
        restart=int(os.environ.get("SLURM_RESTART_COUNT", "0")),
        node=node_name(),
        pid=os.getpid(),
        checkpoint=newest_checkpoint(run),
    )
    record_start(run, line)
    outcome = "done"
    try:
        yield
    except BaseException as error:
        outcome = {TakenOver: "taken over", SystemExit: "stopped"}.get(type(error), "failed")
        raise
    finally:
        changes = {"event": "stop", "time": time.time(), "checkpoint": None, "outcome": outcome}
        record_start(run, line.model_copy(update=changes))


def report_failure(order: JobOrder, error: BaseException) -> Exit:
    """Tell the launcher of a failure that another start would meet again; a lost peer is none."""
    own = isinstance(error, UserError)
    text = str(error) if own else "".join(traceback.format_exception(error))
    log.error("%s", text.rstrip())
    died = isinstance(error, RuntimeError) and any(words in text.lower() for words in LOST_PEER)
    if isinstance(error, LostPeer) or (world_size() > 1 and died):
        return Exit.FAILED
    told = (text, None) if own else (f"{type(error).__name__}: {error}", text)
    with contextlib.suppress(UserError, OSError):  # on a full disk the launcher finds the same, and says it
        write_failure(Path(order.run), order.key, *told)
    return Exit.FAILED


def report_unfit_node(run: Path, reason: str) -> Exit:
    """Name this node in the run folder. Where even that fails, the launcher infers it from the job's silence."""
    log.error("node %s is unfit: %s", node_name(), reason)
    with contextlib.suppress(UserError, OSError):
        write_unfit_node(run, node_name(), reason, job_name())
    return Exit.UNFIT_NODE


def handle_stop_signal(number: int, frame: object) -> None:
    """Until the function sets its own handlers there is nothing to save."""
    raise SystemExit(Exit.STOPPED)


def requeue(order: JobOrder) -> Exit:
    """Put this job back into the queue, unless that leads nowhere; other ranks wait to be ended with it."""
    # scontrol runs inside the step that the requeue kills, and inherits what we ignore.
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    if rank() > 0:
        time.sleep(120)
        return Exit.STOPPED
    if (starts := fruitless_starts(Path(order.run))) >= FRUITLESS_STARTS:
        what = f"{starts} starts ended before the first new checkpoint; give the job more runtime, or save more often"
        return report_failure(order, UserError(what))
    job = os.environ["SLURM_JOB_ID"]
    for _ in range(REQUEUE_TRIES):
        # Refused, too, where Slurm, preempting, was faster: then this process is ended before the next try.
        if not subprocess.run(["scontrol", "requeue", job]).returncode:
            log.warning("job %s goes back into the queue", job)
            break
        time.sleep(5)
    return Exit.STOPPED


def fruitless_starts(run: Path) -> int:
    """Count the last starts, this one included, that brought no checkpoint, no output and no end of the job."""
    newest, decoded = newest_checkpoint(run), last_output(run)
    fruitless = 0
    for line in reversed(read_starts(run)):
        if line.outcome == "done" or (line.event == "start" and (line.checkpoint != newest or line.time < decoded)):
            break
        fruitless += line.event == "start"
    return fruitless


def last_output(folder: Path) -> float:
    """Return when an output of a decoding was last listed (seconds since the epoch), of a run or of a job beside it."""
    run = folder.parents[1] if folder.parent.name == "jobs" else folder
    return max((path.stat().st_mtime for path in run.glob("*/outputs*.json")), default=0.0)


def export_distributed() -> None:
    """Set the variables of torch.distributed's env:// method; the launcher's own processes come with them set."""
    if os.environ.get("SUBMITIT_EXECUTOR") != "slurm":
        return
    from submitit.helpers import TorchDistributedEnvironment

    # Slurm has chosen this job's GPUs: submitit's guess from the local rank would name others.
    TorchDistributedEnvironment().export(set_cuda_visible_devices=False, overwrite=True)


if __name__ == "__main__":
    run_job(JobOrder(**json.loads(sys.argv[1])))


class SignalRecord:
    """The numbers of all signals with a Python handler that this process received since this was made."""

    def __init__(self):
        self._seen: set[int] = set()
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    @property
    def requests_requeue(self) -> bool:
        with contextlib.suppress(BlockingIOError):  # nothing new
            self._seen.update(os.read(self._reader, 4096))
        return signal.SIGUSR2 in self._seen and signal.SIGTERM not in self._seen

"""The process of a job, on each of its tasks: check the node, claim the run, call the function, report the end.

The function is module-level and takes one path, the run folder. It must

- return at once if `done.json` has the run's key, and write that file last;
- resume from its own checkpoints;
- on SIGTERM or SIGUSR2 save one and raise SystemExit(75).

RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set before the call. Every task sees all
GPUs of its node and takes number LOCAL_RANK.

The launcher starts it through submitit's pickle on Slurm, or as a process of its own:

    python -m pipeline.cluster.job_process '{"function": "pipeline.training.job:train_run", "run": "work/…", …}'
"""

import contextlib
import enum
import functools
import gc
import json
import logging
import os
import pkgutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.cluster import state
from pipeline.cluster.node_check import UnfitNode, check_node
from pipeline.core.errors import LostPeer, UnreadableError, UserError
from pipeline.core.program import loaded
from pipeline.core.provenance import code_digest
from pipeline.core.records.jobs import StartLine, record_event
from pipeline.core.retries import LASTING, retry_read, retry_stage, system_error_behind
from pipeline.training.ownership import Ownership, TakenOver

log = logging.getLogger(__name__)

REQUEUE_TRIES = 12  # 5 s apart: slurmctld may be restarting
INTERRUPTED = 128 + signal.SIGINT
FRUITLESS_STARTS = 6  # then the time limit is too short
RECORDED_WITHIN_S = 30.0  # the state of a run, on a disk that may hang
# Errors of a rank when another one died. They are not its own failure, and another start need not meet them.
LOST_PEER = ("connection closed by peer", "connection reset by peer", "connection refused", "nccl", "broken pipe")


class Exit(enum.IntEnum):
    """Exit codes of a job's process."""

    DONE = 0
    FAILED = 1
    UNFIT_NODE = 69
    STOPPED = 75  # asked to stop: a checkpoint was saved, resume later
    TAKEN_OVER = 76


@dataclass(frozen=True)
class JobOrder:
    """The work of a job.

    Attributes:
        function: `module:name` of a module-level function of one path.
        run: The run folder.
        key: The run's key at submission.
        gpus: GPUs of the job in all; 0 leaves them unchecked.
        code: Digest of the package at submission.
        then: `module:name` of a function that the first task calls with the same path after the run is done; it records
            its own failures. Empty if there is none.
    """

    function: str
    run: str
    key: str
    gpus: int
    code: str
    then: str = ""


def run_job(order: JobOrder) -> None:
    """Run a job and end the process with an `Exit` code.

    Raises:
        SystemExit: Always.
    """
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
    """Run one start of the job on this task, from the node check to its end, and return its exit code."""
    run = Path(order.run)
    try:
        gpu = int(os.environ.get("LOCAL_RANK", "0")) if order.gpus else None
        check_node(run, gpu, functools.partial(end_on_unfit_node, run))
        if retry_read(run, lambda: state.job_key(run)) != order.key:
            log.warning("%s changed since this job was submitted: leaving it to a newer job", run)
            return Exit.TAKEN_OVER
        if code_digest() != order.code:
            log.warning("the code changed since this job was submitted")
        call_function(order.function, run, order.key)
        if order.then and state.rank() == 0:
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
    """Call a `function`, `module:name`, with the folder `run`; rank 0 first claims the run, and records start and stop.

    `done.json` has the `key` when the work is done.

    Raises:
        TakenOver: Another process claimed the run.
        SystemExit: The function was asked to stop.
    """
    if state.rank() > 0:
        # The first process looks once it owns the run. If an older owner finishes it first, this one waits in vain.
        if not state.is_done(run, key):
            imported(function)(run)
        return
    ownership = Ownership(run, state.job_name())
    with ownership.hold():
        if state.is_done(run, key):
            log.info("%s is done already", run)
            return
        with recorded_start(run):
            try:
                work = functools.partial(imported(function), run)  # takes seconds, so only after the start is recorded
                retry_stage(work) if state.world_size() == 1 else work()  # several would wait for one another
            except SystemExit as error:
                if error.code == Exit.STOPPED and ownership.is_lost:
                    raise TakenOver from error
                raise


def imported(function: str) -> Callable[[Path], None]:
    """Return a function, `module:name`, with its module imported; exempt what was loaded from garbage collection."""
    loaded(function.partition(":")[0])
    gc.freeze()
    return pkgutil.resolve_name(function)


@contextlib.contextmanager
def recorded_start(run: Path) -> Iterator[None]:
    """Record start and end of this attempt."""
    line = StartLine(
        event="start",
        job=state.job_name(),
        restart=int(os.environ.get("SLURM_RESTART_COUNT", "0")),
        node=state.node_name(),
        pid=os.getpid(),
        checkpoint=state.newest_checkpoint(run),
    )
    record_event(run, line)
    outcome = "done"
    try:
        yield
    except BaseException as error:
        outcome = {TakenOver: "taken over", SystemExit: "stopped"}.get(type(error), "failed")
        raise
    finally:
        changes = {"event": "stop", "time": time.time(), "checkpoint": None, "outcome": outcome}
        record_event(run, line.model_copy(update=changes))


def report_failure(order: JobOrder, error: BaseException) -> Exit:
    """Record an `error` that another start of the `order` would meet again, not the loss of a peer; return FAILED."""
    own = isinstance(error, UserError)
    text = str(error) if own else "".join(traceback.format_exception(error))
    log.error("%s", text.rstrip())
    died = isinstance(error, RuntimeError) and any(words in text.lower() for words in LOST_PEER)
    refusal = system_error_behind(error)
    passes = refusal is not None and refusal.errno not in LASTING  # one process alone has retried it
    if isinstance(error, LostPeer) or (state.world_size() > 1 and (died or passes)):
        return Exit.FAILED
    message, trace = (text, None) if own else (f"{type(error).__name__}: {error}", text)
    with contextlib.suppress(UserError, OSError):  # if the disk is full, the launcher reports the same
        state.record_failure(Path(order.run), order.key, message, trace)
    return Exit.FAILED


def report_unfit_node(run: Path, reason: str) -> Exit:
    """Return UNFIT_NODE; record the `reason` for `run`, or else the launcher infers it from the job's silence."""
    log.error("node %s is unfit: %s", state.node_name(), reason)
    with contextlib.suppress(UserError, OSError):
        state.record_unfit_node(run, state.node_name(), reason, state.job_name())
    return Exit.UNFIT_NODE


def end_on_unfit_node(run: Path, reason: str) -> None:
    """End this process, whose node check hangs for some `reason`; record it for `run` unless that hangs, too."""
    recorder = threading.Thread(target=report_unfit_node, args=(run, reason), daemon=True)
    recorder.start()
    recorder.join(RECORDED_WITHIN_S)
    os._exit(Exit.UNFIT_NODE)


def handle_stop_signal(number: int, frame: object) -> None:
    """Exit at once; until the function sets its own handlers there is nothing to save.

    Raises:
        SystemExit: Always, with `Exit.STOPPED`.
    """
    raise SystemExit(Exit.STOPPED)


def requeue(order: JobOrder) -> Exit:
    """Requeue this job on Slurm, unless it is done or makes no progress; other ranks wait to be ended with it."""
    # scontrol runs inside the step that the requeue kills, and inherits the ignored signals.
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    run = Path(order.run)
    unless_unreadable = contextlib.suppress(UnreadableError, OSError)  # another start may read it
    with unless_unreadable:
        if state.is_done(run, order.key):  # the rule `decode` makes what is left, in a job of its own
            return Exit.STOPPED
    if state.rank() > 0:
        time.sleep(120)
        return Exit.STOPPED
    with unless_unreadable:
        if (starts := fruitless_starts(run)) >= FRUITLESS_STARTS:
            advice = "give the job more runtime, or save more often"
            what = f"{starts} starts ended before the first new checkpoint; {advice}"
            return report_failure(order, UserError(what))
    request_requeue(os.environ["SLURM_JOB_ID"])
    return Exit.STOPPED


def request_requeue(job: str) -> None:
    """Ask Slurm to requeue a `job`; if that fails, log what continues it."""
    fault = "Slurm refuses it"
    for _ in range(REQUEUE_TRIES):
        # Also refused if Slurm's preemption came first; then this process ends before the next try.
        try:
            if not subprocess.run(["scontrol", "requeue", job]).returncode:
                return log.warning("job %s is requeued", job)
        except OSError as error:
            fault = f"scontrol: {error.strerror}"
            break
        time.sleep(5)
    log.error(
        "job %s has saved its progress, but can't be requeued (%s): a launcher that still waits for it submits "
        "another job; otherwise run the same command again",
        job,
        fault,
    )


def fruitless_starts(run: Path) -> int:
    """Count the latest starts, including this one, without a new checkpoint, output or end of the job."""
    newest, decoded = state.newest_checkpoint(run), last_output(run)
    fruitless = 0
    for line in reversed(state.read_starts(run)):
        if line.outcome == "done" or (line.event == "start" and (line.checkpoint != newest or line.time < decoded)):
            break
        fruitless += line.event == "start"
    return fruitless


def last_output(folder: Path) -> float:
    """Return when an output of a run, or of a job beside it, was last listed (seconds since the epoch)."""
    run = folder.parents[1] if folder.parent.name == "jobs" else folder
    return max((path.stat().st_mtime for path in run.glob("*/outputs.json*")), default=0.0)


def export_distributed() -> None:
    """Set the variables of torch.distributed's env:// method on Slurm; the launcher sets those of its own processes."""
    if os.environ.get("SUBMITIT_EXECUTOR") != "slurm":
        return
    from submitit.helpers import TorchDistributedEnvironment

    # Slurm has chosen this job's GPUs: submitit's guess from the local rank would name others.
    TorchDistributedEnvironment().export(set_cuda_visible_devices=False, overwrite=True)
    if os.environ.get("SLURM_JOB_NUM_NODES") == "1":
        os.environ["MASTER_ADDR"] = "127.0.0.1"  # Slurm's name of the node need not resolve


class SignalRecord:
    """The signals with a Python handler that this process has received.

    SIGUSR2 means that the cluster wants its node back (time limit near, preemption): the job is requeued. SIGTERM means
    that a user ends the job (scancel), or that Slurm ends and requeues it itself. The job's function handles both by
    saving and stopping; afterwards this record names the signal.
    """

    def __init__(self):
        self._seen: set[int] = set()
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    @property
    def requests_requeue(self) -> bool:
        """Return whether SIGUSR2 came, but no SIGTERM."""
        with contextlib.suppress(BlockingIOError):  # nothing new
            self._seen.update(os.read(self._reader, 4096))
        return signal.SIGUSR2 in self._seen and signal.SIGTERM not in self._seen


if __name__ == "__main__":
    run_job(JobOrder(**json.loads(sys.argv[1])))

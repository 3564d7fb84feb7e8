"""Launcher of jobs on Slurm or on this machine: submit or adopt a job, and wait for its end."""

import logging
import math
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pipeline.cluster import job_process, local, slurm, state, wait
from pipeline.cluster.queue import Queue, queue_interval
from pipeline.cluster.resources import Positive, Resources
from pipeline.core import files, layout
from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError
from pipeline.core.provenance import code_digest
from pipeline.stages import PIPELINE, STAGES, perform as perform_stage
from pipeline.training.specification import write_specification

log = logging.getLogger(__name__)

TRAIN, DECODE = "pipeline.training.job:train_run", "pipeline.outputs.decode:decode_ready"
What = Argument[Path](exclusive="what", required=True)


@dataclass(frozen=True)
class LaunchOptions(Resources):
    """Options of a launcher: where the job runs, and which resources it requests.

    Attributes:
        launcher: Where the job runs.
        trainings_per_gpu: Jobs that may share a GPU of this machine; Slurm lends GPUs by its own rules.
        alone: Share no GPU, for a stage that measures time. `gpus` then counts the jobs that could share them.
    """

    launcher: Literal["slurm", "local"] = "local"
    trainings_per_gpu: Positive = 1
    alone: bool = False


def launch(
    command: Annotated[tuple[str, ...], Argument(metavar="-- STAGE …")] = (),
    *,
    run: Annotated[Path | None, What] = None,
    folder: Annotated[Path | None, What] = None,
    makes: tuple[Path, ...] = (),
    beside: Annotated[Path | None, Argument(metavar="RUN")] = None,
    spec: Annotated[str | None, Argument(metavar="JSON")] = None,
    decodings: Annotated[str | None, Argument(metavar="JSON")] = None,
    function: str = TRAIN,
    options: LaunchOptions,
) -> None:
    r"""Run a job on Slurm or here, and wait until it ends.

        python -m pipeline launch --run work/demo/runs/attention/base/grammar-en-de/seed1-… --launcher slurm \
            --cpus 2 --mem-mb 4000 --runtime-min 60 --sbatch='--partition=low'
        python -m pipeline launch --folder jobs/test --makes test.tok --launcher slurm --gpus 1 --mem-mb 8000 \
            -- translate --weights model.safetensors --split test --out test.tok

    The first form trains a run, after writing its run.yaml with --spec. The second runs any stage, which makes the
    files named by --makes. The folder holds the job's state.jsonl, its log (on Slurm: slurm/ID_0_log.out), done.json
    in the end, and a run's checkpoints.

    You may kill this process at any time: the same command waits for the same job again. A job that the cluster stops
    resumes by itself. A job that fails, or that is cancelled, ends this process with exit code 1 and the reason.

    If the stage reports that nothing is left to do (its module has `is_complete`), it runs here, without a job. With
    --beside the launcher first waits for the training job of that run, which does the same work at its end.

    Args:
        command: Stage to run, with its arguments.
        run: Folder of the run to train, with its run.yaml.
        folder: Folder of the files about another stage's job.
        makes: Files that the stage writes.
        beside: Run whose training job may do the same work at its end.
        spec: Specification of the run, written to its run.yaml.
        decodings: How the training job decodes the run at its end.
        function: Function of a run folder that the job calls, as module:function.
        options: Where the job runs, and what it asks for.

    Raises:
        UserError: The options do not fit together, or the job failed.
    """
    if run:
        if command:
            raise UserError(f"launch --run trains a run; use --folder to run {command[0]!r}")
        if spec:
            write_specification(run, spec)
        if decodings:
            state.record_decodings(run, decodings)
        files.register_output(run_until_done(options, run, function, DECODE if function == TRAIN else ""))
        return
    assert folder
    if not command:
        raise UserError("launch --folder: name the stage after `--`, e.g. `-- translate --weights …`")
    if is_complete(options, folder, [*command], beside):
        perform_stage([*command])
    elif options.launcher == "slurm":
        state.record_command(folder, [*command], [*makes])
        run_until_done(options, folder, "pipeline.cluster.state:perform_command")
    else:
        sharing = options.trainings_per_gpu
        gpus = math.ceil(options.gpus / sharing) if options.alone else options.gpus
        local.acquire_gpus(gpus, sharing, options.alone)
        perform_stage([*command])  # needs no own process: nothing to adopt or save


def is_complete(options: LaunchOptions, folder: Path, command: list[str], beside: Path | None) -> bool:
    """Return whether the stage of a `command` with a job in `folder` reports that nothing is left to do.

    `options` say where jobs run; `beside` is a run whose training job is waited for while something is left.
    """
    stage = PIPELINE.parse(command)
    has_nothing_to_do = getattr(STAGES[stage.stage].load_module(), "is_complete", None)
    if has_nothing_to_do is None:
        return False
    if options.launcher == "slurm" and beside:
        wait_for_training(beside, Queue(queue_interval()), lambda: has_nothing_to_do(stage))
    if has_nothing_to_do(stage):
        return True
    (folder / layout.DONE_FILE).unlink(missing_ok=True)  # written by an earlier job whose outputs are gone
    return False


def wait_for_training(run: Path, queue: Queue, is_done_already: Callable[[], bool]) -> None:
    """Wait until the training job of `run` in the `queue` has ended or `is_done_already` says that all is made."""
    note, begun, reported = state.read_submission(run), time.monotonic(), set[str]()
    while note and note.launcher == "slurm" and note.job and not is_done_already():
        job = queue.look_up(note.job, begun)
        if job and job.is_over:
            return
        if job and job.in_words not in reported:  # reasons to wait alternate
            log.info("waiting for job %s, which trained %s and may decode it: it %s", note.job, run, job.in_words)
            reported.add(job.in_words)
        time.sleep(min(10.0, queue.interval_s))  # each check hashes the outputs


def run_until_done(options: LaunchOptions, folder: Path, function: str, then: str = "") -> Path:
    """Return the done.json of a `folder` after running its job, a `function` (module:function), with `options`.

    `then` is called afterwards. On Slurm the launcher does not wait for it.

    Raises:
        UserError: The job failed.
    """
    key = state.job_key(folder)
    order = job_process.JobOrder(function, str(folder.resolve()), key, options.gpus, code_digest(), then)
    if not state.is_done(folder, key):
        wait_or_detach(wait.Waiter(folder, key, jobs_of(options, folder, order)))
    return folder / layout.DONE_FILE


def jobs_of(options: LaunchOptions, folder: Path, order: job_process.JobOrder) -> wait.Jobs:
    """Return the jobs of a `folder` with this `order`, on Slurm or on this machine as `options` say.

    Raises:
        UserError: The launcher is `slurm` and a program of Slurm is missing, or the folder's name is a pattern of logs.
    """
    if options.launcher == "local":
        local.acquire_gpus(options.gpus, options.trainings_per_gpu)
        return local.LocalJobs(folder, order, options.processes, options.cpus)
    slurm.require_slurm()
    return slurm.SlurmJobs(folder, order, options, Queue(queue_interval()))


class Detached(BaseException):
    """This process was asked to end; its job was not."""


def wait_or_detach(waiter: wait.Waiter) -> None:
    """Wait for a run; on a signal log which job continues without this process.

    Raises:
        SystemExit: A signal came; the code is 128 plus its number.
    """

    def detach(number: int, frame: object) -> None:
        for again in (signal.SIGINT, signal.SIGTERM):
            signal.signal(again, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # when a terminal closes, shell and kernel both send it
        raise Detached(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` has it ignored
            signal.signal(number, detach)
    try:
        waiter.wait()
    except Detached as signalled:
        waiter.detach()
        sys.exit(128 + signalled.args[0])

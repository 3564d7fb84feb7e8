"""The command that trains one run; the same command resumes it."""

import logging
import shlex
import shutil
from itertools import chain
from pathlib import Path
from typing import Annotated

from pipeline.config import RunSpec, load_run
from pipeline.core.command_line import Argument
from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError
from pipeline.core.layout import DONE_FILE, EVENTS, RUN_FILE, TELEMETRY_FILES, WEIGHTS_FILE
from pipeline.core.provenance import provenance
from pipeline.core.records.training import Outcome, Parameters, TrainedRun
from pipeline.core.retries import retry_read
from pipeline.data.encoded_files import require_whole, training_stores
from pipeline.data.staging import stage_in
from pipeline.models.seq2seq import count_parameters
from pipeline.training import checkpoint, distributed, machine, ownership, setup, specification, tensor_file, warm_start
from pipeline.training.trainer import Trainer

log = logging.getLogger(__name__)


def train(
    *,
    run: Path,
    spec: Annotated[str | None, Argument(metavar="JSON")] = None,
    restart: bool = False,
    options: specification.MachineOptions,
) -> None:
    """Train a run, or resume it from its last checkpoint.

        python -m pipeline train --run work/demo/runs/weighted/A/grammar-en-de/seed1-…

    Reads run.yaml and the corpus it names. Writes into the run's folder

        checkpoints/        weights to average, and what is needed to resume (checkpoint.py)
        progress.jsonl      loss, perplexity, throughput; validations      samples.jsonl   three translations each
        events/             the numbers of progress.jsonl for TensorBoard, if `tensorboard` is set
        cost.json           seconds, GPU-hours, memory, tokens, FLOPs of every start
        model.safetensors   the final weights
        done.json           written last: {key, steps, weights_digest, dev, train, parameters, skipped_updates, …}

    SIGTERM, SIGUSR2 and SIGHUP write a checkpoint and end with exit code 75: run it again. Several processes train one
    model when torchrun or the cluster launcher starts them.

    Args:
        run: Folder that holds run.yaml.
        spec: Specification of the run, written to its run.yaml first.
        restart: Delete what the run has done so far, and start from the beginning.
        options: Device, threads and checkpoint interval.
    """
    if spec:
        specification.write_specification(run, spec)
    checkpoints = checkpoint.Checkpoints(run, specification.run_key(run), keep=1)
    train_owned(run, options, checkpoints if restart else None)


def train_owned(
    run_folder: Path, options: specification.MachineOptions, to_clear: checkpoint.Checkpoints | None = None
) -> None:
    """Train a run while this process owns its folder.

    Raises:
        UserError: Another process took over the run; or see `train_run`.
    """
    group = distributed.Group.from_environment()
    if to_clear and group.size > 1:
        raise UserError("--restart: run it with one process first, then start the others without it")
    if not group.is_first:
        return train_run(run_folder, options.device, options.threads, options.save_every)
    try:
        with ownership.Ownership(run_folder, "local").hold():
            if to_clear:
                delete_progress(to_clear)
            train_run(run_folder, options.device, options.threads, options.save_every)
    except ownership.TakenOver as error:
        raise UserError(f"{run_folder}: another process trains this run now") from error


def train_run(
    run_folder: Path,
    device: machine.DeviceChoice = "auto",
    threads: int | None = None,
    save_every_s: float = specification.SAVE_EVERY_S,
) -> None:
    """Train the run of `run_folder` to its end, or return at once if it is done.

    Args:
        run_folder: Folder that holds run.yaml.
        device: Where to train.
        threads: CPU threads; None chooses.
        save_every_s: Seconds between resume files, besides the periodic ones.

    Raises:
        UserError: Bad input, a checkpoint of another run, no memory, no disk space, or divergence.
        SystemExit: A signal asked to stop (75; 130 after Ctrl-C); a checkpoint is written.
    """
    run_folder = Path(run_folder)
    spec, key = load_run(run_folder / RUN_FILE), specification.run_key(run_folder)
    group = distributed.Group.from_environment()
    checkpoints = checkpoint.Checkpoints(run_folder, key, spec.training.keep_checkpoints)
    if group.is_first:
        tidy(checkpoints)
        if not checkpoints.has_begun:
            warm_start.log_siblings(run_folder, spec)
            any(warm_start.continue_from(checkpoints, shorter) for shorter in warm_start.shorter_runs(run_folder, spec))
    if is_done(run_folder, key):
        log.info("%s is already trained", spec.name)
    elif outcome := stored_outcome(checkpoints, spec.name, write=group.is_first):
        if group.is_first:
            write_done(checkpoints, outcome)
    else:
        train_to_end(spec, checkpoints, group, device, threads, save_every_s)


def stored_outcome(checkpoints: checkpoint.Checkpoints, name: str, write: bool) -> Outcome | None:
    """Return the outcome of a finished training that lacks `done.json` or the final weights, else None.

    Args:
        checkpoints: Those of the run.
        name: The run in log lines.
        write: Rename damaged final weights, and write missing ones again from the last checkpoint.
    """
    if outcome := checkpoints.final_outcome(write):
        log.info("%s is already trained, only done.json was missing", name)
        return outcome
    done = TrainedRun.read_if_there(checkpoints.run_folder / DONE_FILE)
    if done is None or done.key != checkpoints.key or (outcome := checkpoints.outcome_of_last(done)) is None:
        return None
    log.info("%s is already trained, its weights are written again from the last checkpoint", name)
    if write:
        checkpoints.save_final(tensor_file.read_tensor_file(checkpoints.weights_path(outcome.steps))[0], outcome)
    return outcome


def train_to_end(
    spec: RunSpec,
    checkpoints: checkpoint.Checkpoints,
    group: distributed.Group,
    device: machine.DeviceChoice,
    threads: int | None,
    save_every_s: float,
) -> None:
    """Choose and prepare the machine, connect the group, then train; see `train_run`.

    Raises:
        SystemExit: A signal asked to stop; a checkpoint is written.
    """
    chosen = machine.choose_device(device, group.local_rank)
    threads = machine.choose_threads(threads)
    machine.prepare(chosen, threads, strict=spec.model.reads != "speech")
    machine.check_precision(chosen, spec.training.precision)
    description = machine.describe_machine(chosen, threads, group.size)
    if group.is_first:
        require_whole(Path(spec.corpus))
    if group.local_rank == 0:  # one process of a node copies; the others wait when they connect
        stage_in(chain.from_iterable(training_stores(Path(spec.corpus))))
    with ownership.StopRequest() as stop, group.connected(chosen):
        trainer = setup.build_trainer(spec, checkpoints, group, chosen, description, stop, save_every_s)
        trainer.warm_up()
        try:
            trainer.train()
        except SystemExit:
            if group.is_first:
                log.info("%s: stopped after step %d; run the same command to resume", spec.name, trainer.state.step)
            raise
        if group.is_first:
            finish(trainer)


def tidy(checkpoints: checkpoint.Checkpoints) -> None:
    """Remove half-written files, and move aside a finished run with other settings.

    Raises:
        UserError: There are checkpoints of an unfinished run with other settings.
    """
    checkpoints.remove_orphans()
    foreign = checkpoints.foreign()
    if checkpoints.final_weights in foreign:
        warm_start.move_aside(checkpoints.run_folder, checkpoint.stored_key(checkpoints.final_weights) or "")
    elif foreign:
        raise UserError(
            f"{foreign[0]}: is a checkpoint of another run: run.yaml or its corpus has changed since. Restore it to "
            "resume, or train from the beginning with "
            f"`python -m pipeline train --run {shlex.quote(str(checkpoints.run_folder))} --restart`"
        )


def delete_progress(checkpoints: checkpoint.Checkpoints) -> None:
    """Delete everything that the run has written."""
    for name in (DONE_FILE, *TELEMETRY_FILES):
        (checkpoints.run_folder / name).unlink(missing_ok=True)
    shutil.rmtree(checkpoints.run_folder / EVENTS, ignore_errors=True)
    checkpoints.clear()


def is_done(run_folder: Path, key: str) -> bool:
    """Return whether the final weights exist and match `done.json`, and both belong to the run `key`."""
    done, weights = TrainedRun.read_if_there(run_folder / DONE_FILE), run_folder / WEIGHTS_FILE
    if done is None or done.key != key or not weights.exists():
        return False
    return retry_read(weights, lambda: sha256_file(weights)) == done.weights_digest


def finish(trainer: Trainer) -> None:
    """Write the final weights and, last, `done.json`."""
    outcome = outcome_of(trainer)
    checkpoints = trainer.checkpoints
    trainer.cost.write(trainer.state.step)
    checkpoints.save_final(tensor_file.tensors_of(trainer.model), outcome)
    write_done(checkpoints, outcome)
    log.info("%s: done, dev perplexity %.2f", trainer.spec.name, outcome.dev.perplexity)


def write_done(checkpoints: checkpoint.Checkpoints, outcome: Outcome) -> None:
    """Write `done.json` after removing all resume files but the last."""
    digest = sha256_file(checkpoints.final_weights)
    done = TrainedRun(key=checkpoints.key, weights_digest=digest, **dict(outcome))
    checkpoints.clear_resume()  # first, as done.json marks that nothing is left to do
    done.write(checkpoints.run_folder / DONE_FILE)


def outcome_of(trainer: Trainer) -> Outcome:
    """Return the record of a finished training."""
    state, batches = trainer.state, trainer.steps.batches
    groups = trainer.model.parameter_groups()
    assert state.dev  # a validation follows the last step
    return Outcome(
        steps=state.step,
        dev=state.dev,
        best_dev=state.best_dev,
        train=state.train,
        fit=state.fit,
        parameters=Parameters(
            total=count_parameters(trainer.model),
            branch_weights=sum(weight.numel() for weight in groups["branch_weights"]),
        ),
        skipped_updates=state.skipped_updates,
        returned=state.returned,
        updates_per_epoch=len(batches),
        padding=batches.padding,
        left_out_pairs=batches.left_out,
        micro_batch=batches.lowered_to,
        provenance=provenance() | {"vocabulary": trainer.vocabulary},
        continued_from=state.continued_from,
    )

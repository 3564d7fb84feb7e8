"""Training of one run: the same command whatever happened before."""

import logging
import shutil
from itertools import chain
from pathlib import Path
from typing import Annotated

import torch

from pipeline.config import RunSpec, load_run
from pipeline.core.command_line import Argument
from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError
from pipeline.core.layout import DONE_FILE, EVENTS, RUN_FILE, SAMPLES_FILE, TELEMETRY_FILES, WEIGHTS_FILE
from pipeline.core.provenance import provenance
from pipeline.core.records.training import Machine, Outcome, Parameters, TrainedRun
from pipeline.core.retries import retry_read
from pipeline.data.batches.base import EvalBatches
from pipeline.data.batches.corpus_batches import (
    AnyBatch,
    AnySplit,
    batch_size,
    check_targets,
    evaluation_split,
    input_kind,
    normalisation_corpus,
    training_batches,
)
from pipeline.data.store.encoded_files import require_whole, training_stores
from pipeline.data.store.staging import stage
from pipeline.models.seq2seq import count_parameters
from pipeline.training import machine
from pipeline.training.arguments import SAVE_EVERY_S, MachineOptions
from pipeline.training.captured_steps import captured_steps
from pipeline.training.checkpoint import Checkpoints, key_of
from pipeline.training.cost import CostCounter
from pipeline.training.description import describe
from pipeline.training.distributed import Group
from pipeline.training.key import run_key
from pipeline.training.neighbours import announce, move_beside, shorter_runs, take_up
from pipeline.training.optimiser import Optimiser
from pipeline.training.ownership import Ownership, TakenOver
from pipeline.training.parts import assemble
from pipeline.training.progress import JsonLines, Progress
from pipeline.training.resume_point import ResumePoint
from pipeline.training.schedule import Schedule
from pipeline.training.signals import StopRequest
from pipeline.training.specification import write_specification
from pipeline.training.state import TrainingState
from pipeline.training.tensor_file import read_tensor_file, tensors_of
from pipeline.training.trainer import Trainer
from pipeline.training.validation import Validation

log = logging.getLogger(__name__)


def train(
    *,
    run: Path,
    spec: Annotated[str | None, Argument(metavar="JSON")] = None,
    restart: bool = False,
    options: MachineOptions,
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

    SIGTERM and SIGUSR2 write a checkpoint and end with exit code 75: run it again. Several processes train one model
    when torchrun or the cluster launcher starts them.

    Args:
        run: Folder that holds run.yaml.
        spec: Specification of the run, written to its run.yaml first.
        restart: Delete what the run has done so far, and start from the beginning.
        options: Device, threads and checkpoint interval.
    """
    if spec:
        write_specification(run, spec)
    checkpoints = Checkpoints(run, run_key(run), keep=1)
    train_held(run, options, checkpoints if restart else None)


def train_held(run_folder: Path, options: MachineOptions, to_clear: Checkpoints | None = None) -> None:
    """Train the run while no other process does.

    Args:
        run_folder: Folder that holds run.yaml.
        options: Device, threads and checkpoint interval.
        to_clear: What the run has done so far, to be deleted first.
    """
    group = Group.from_environment()
    if to_clear and group.size > 1:
        raise UserError("--restart: remove what is there with one process first, then start the others")
    if not group.is_first:
        return train_run(run_folder, options.device, options.threads, options.save_every)
    try:
        with Ownership(run_folder, "local").hold():
            if to_clear:
                start_anew(to_clear)
            train_run(run_folder, options.device, options.threads, options.save_every)
    except TakenOver as error:
        raise UserError(f"{run_folder}: another process trains this run now") from error


def train_run(
    run_folder: Path, device: machine.DeviceChoice = "auto", threads: int | None = None, save_every_s=SAVE_EVERY_S
) -> None:
    """Train the run of `run_folder` to its end, or return at once when it is done.

    Args:
        save_every_s: seconds between checkpoints written beside the periodic ones.

    Raises:
        UserError: bad input, a checkpoint of another run, no memory, no disk, or a loss that is not finite.
        SystemExit: a signal asked to stop (75; 130 after Ctrl-C); a checkpoint is written.
    """
    run_folder = Path(run_folder)
    spec, key = load_run(run_folder / RUN_FILE), run_key(run_folder)
    group = Group.from_environment()
    checkpoints = Checkpoints(run_folder, key, spec.training.keep_checkpoints)
    if group.is_first:
        tidy(checkpoints)
        if not checkpoints.has_any:
            begin(checkpoints, spec)
    if is_done(run_folder, key):
        log.info("%s is trained already", spec.name)
        return
    if outcome := checkpoints.final_outcome():
        log.info("%s is trained already, only done.json was missing", spec.name)
        return write_done(checkpoints, outcome) if group.is_first else None
    done = TrainedRun.read_if_there(run_folder / DONE_FILE)
    if done and done.key == key and (outcome := checkpoints.outcome_of_last(done)):
        log.info("%s is trained already, its weights are written again from the last checkpoint", spec.name)
        if group.is_first:
            checkpoints.save_final(read_tensor_file(checkpoints.kept(outcome.steps))[0], outcome)
            write_done(checkpoints, outcome)
        return
    chosen = machine.choose_device(device, group.local_rank)
    threads = machine.choose_threads(threads)
    machine.prepare(chosen, threads, strict=spec.model.reads != "speech")
    machine.check_precision(chosen, spec.training.precision)
    facts = machine.facts(chosen, threads, group.size)
    if group.is_first:
        require_whole(Path(spec.corpus))
    if group.local_rank == 0:  # of each node; the others meet it below
        stage(chain.from_iterable(training_stores(Path(spec.corpus))))
    with StopRequest() as stop, group.connected(chosen):
        trainer = build_trainer(spec, checkpoints, group, chosen, facts, stop, save_every_s)
        trainer.try_largest()
        try:
            trainer.train()
        except SystemExit:
            if group.is_first:
                log.info("%s: stopped after update %d; the same command goes on from it", spec.name, trainer.state.step)
            raise
        if group.is_first:
            finish(trainer)


def tidy(checkpoints: Checkpoints) -> None:
    """Clear away what a kill left, and move what a finished run of other settings did beside the run.

    Raises:
        UserError: there are checkpoints of an unfinished run of other settings.
    """
    checkpoints.remove_orphans()
    foreign = checkpoints.foreign()
    if checkpoints.final_weights in foreign:
        move_beside(checkpoints.run_folder, key_of(checkpoints.final_weights) or "")
    elif foreign:
        raise UserError(
            f"{foreign[0]}: is a checkpoint of another run: run.yaml or its corpus changed since. Put it back to go "
            f"on, or start anew with `python -m pipeline train --run {checkpoints.run_folder} --restart`"
        )


def begin(checkpoints: Checkpoints, spec: RunSpec) -> None:
    """Name the runs beside this one, and take up a shorter one where that ends in the same bytes."""
    announce(checkpoints.run_folder, spec)
    any(take_up(checkpoints, shorter) for shorter in shorter_runs(checkpoints.run_folder, spec))


def start_anew(checkpoints: Checkpoints) -> None:
    """Remove all that the run has written."""
    for name in (DONE_FILE, *TELEMETRY_FILES):
        (checkpoints.run_folder / name).unlink(missing_ok=True)
    shutil.rmtree(checkpoints.run_folder / EVENTS, ignore_errors=True)
    checkpoints.clear()


def is_done(run_folder: Path, key: str) -> bool:
    """Whether the final weights are there and `done.json` says that they, as they are, are this run's."""
    done, weights = TrainedRun.read_if_there(run_folder / DONE_FILE), run_folder / WEIGHTS_FILE
    if done is None or done.key != key or not weights.exists():
        return False
    return retry_read(weights, lambda: sha256_file(weights)) == done.weights_digest


def build_trainer(
    spec: RunSpec,
    checkpoints: Checkpoints,
    group: Group,
    device: torch.device,
    facts: Machine,
    stop: StopRequest,
    save_every_s: float,
) -> Trainer:
    """All collaborators of the loop, in the state in which the run was left."""
    training, corpus, run_folder = spec.training, Path(spec.corpus), checkpoints.run_folder
    torch.manual_seed(spec.seed)
    model = assemble(spec).to(device)
    optimiser = Optimiser(model, Schedule(spec.model, training), training)
    state = restore(checkpoints, model, optimiser, group, device, facts)
    batches = training_batches(spec)
    dev = evaluation_split(corpus, "dev", normalisation_corpus(spec), input_kind(spec))
    check_targets(spec, dev)
    measured = EvalBatches[AnySplit, AnyBatch](dev, batch_size(spec))
    validation = Validation(corpus, measured, batches, device, group, lambda: machine.autocast(device, spec))
    told = {"silent": not group.is_first, "tensorboard": training.tensorboard}
    progress = Progress(spec.name, run_folder, state.step, training.max_steps, **told)
    if group.is_first:
        checkpoints.forget(state.returned)
        JsonLines(run_folder / SAMPLES_FILE).rewind(state.step)
        checkpoints.check_space(model, training.max_steps // training.checkpoint_every + 1)
        describe(spec, model, batches, group, facts, state)
    cost = CostCounter(run_folder, device, facts, state.step)
    return Trainer(
        spec=spec,
        model=model,
        optimiser=optimiser,
        batches=batches,
        state=state,
        group=group,
        device=device,
        checkpoints=checkpoints,
        validation=validation,
        progress=progress,
        cost=cost,
        stop=stop,
        machine=facts,
        save_every_s=save_every_s,
        captured=captured_steps(spec, model, optimiser, batches, group, device),
    )


def restore(
    checkpoints: Checkpoints,
    model: torch.nn.Module,
    optimiser: Optimiser,
    group: Group,
    device: torch.device,
    facts: Machine,
) -> TrainingState:
    """Load the newest good checkpoint, which the first process chooses; a fresh state if there is none."""
    point = checkpoints.newest_good() if group.is_first else None
    path = group.from_first(str(point.path) if point else None, device)
    if path is None:
        return TrainingState()
    point = point or ResumePoint.read(Path(path))
    was, now = (Machine.model_validate(one).model_dump() for one in (point.facts["machine"], facts))
    if group.is_first and was != now:
        log.warning(
            "%s was written on another machine or with other settings of it (%s): the final weights will equal those "
            "of an undisturbed run within rounding only",
            *(path, ", ".join(f"{key} {was[key]}, now {now[key]}" for key in now if was[key] != now[key])),
        )
    return point.restore(model, optimiser)


def finish(trainer: Trainer) -> None:
    """Write the final weights and, last, `done.json`."""
    outcome = outcome_of(trainer)
    checkpoints = trainer.checkpoints
    trainer.cost.write(trainer.state.step)
    checkpoints.save_final(tensors_of(trainer.model), outcome)
    write_done(checkpoints, outcome)
    log.info("%s: done, dev perplexity %.2f", trainer.spec.name, outcome.dev.perplexity)


def write_done(checkpoints: Checkpoints, outcome: Outcome) -> None:
    digest = sha256_file(checkpoints.final_weights)
    done = TrainedRun(key=checkpoints.key, weights_digest=digest, **dict(outcome))
    checkpoints.clear_resume()  # before the sign that nothing is left to do
    done.write(checkpoints.run_folder / DONE_FILE)


def outcome_of(trainer: Trainer) -> Outcome:
    state, batches = trainer.state, trainer.batches
    groups = trainer.model.parameter_groups()
    assert state.dev and state.train  # the last update is followed by a validation
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
        provenance=provenance(),
        continued_from=state.continued_from,
    )

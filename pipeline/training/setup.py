"""Setup of a training: model, optimiser and batches in the state in which the run was left."""

import logging
from pathlib import Path

import numpy as np
import torch

from pipeline.config import RunSpec, TrainingConfig
from pipeline.core.errors import count_of
from pipeline.core.layout import PROGRESS_FILE, SAMPLES_FILE
from pipeline.core.records.corpus import read_corpus
from pipeline.core.records.training import Machine
from pipeline.data.batches import corpus_batches
from pipeline.models.seq2seq import Seq2Seq, count_parameters, parameters_by_part
from pipeline.training import distributed, guards, machine, ownership, run_model, step, trainer
from pipeline.training.captured_steps import captured_steps
from pipeline.training.checkpoint import Checkpoints, ResumePoint
from pipeline.training.cost import CostCounter
from pipeline.training.optimiser import Optimiser, Schedule
from pipeline.training.progress import JsonLines, Progress
from pipeline.training.state import TrainingState
from pipeline.training.validation import Validation

log = logging.getLogger(__name__)


def build_trainer(
    spec: RunSpec,
    checkpoints: Checkpoints,
    group: distributed.Group,
    device: torch.device,
    description: Machine,
    stop: ownership.StopRequest,
    save_every_s: float,
) -> trainer.Trainer:
    """Return the trainer of a run on a `device`, in the state of its newest checkpoint.

    The group is connected. `description` is recorded in checkpoints and costs. Resume files are `save_every_s` seconds
    apart.
    """
    training, corpus, run_folder = spec.training, Path(spec.corpus), checkpoints.run_folder
    torch.manual_seed(spec.seed)
    model = run_model.build_initial_model(spec).to(device)
    optimiser = Optimiser(model, Schedule(spec.model, training), training)
    state = restore(checkpoints, model, optimiser, group, device, description)
    batches = corpus_batches.training_batches(spec)
    if state.micro_batch:
        batches.lower_micro_batches(state.micro_batch)
    dev = corpus_batches.evaluation_split(spec, corpus, "dev")
    corpus_batches.check_targets(spec, dev)
    longest, remedy = np.maximum(dev.src_lengths, dev.tgt_lengths), "shorten or remove them, or raise"
    run_model.require_positions(model, dev.name, longest, remedy)  # no setting leaves out long ones
    dev_batches = corpus_batches.EvalBatches[corpus_batches.AnySplit, corpus_batches.AnyBatch](
        dev, corpus_batches.batch_size(spec)
    )
    validation = Validation(corpus, dev_batches, batches, device, group, lambda: machine.autocast(device, spec))
    reporting = {"silent": not group.is_first, "tensorboard": training.tensorboard}
    progress = Progress(spec.name, run_folder, state.step, training.max_steps, **reporting)
    if group.is_first:
        checkpoints.remove_rolled_back(state.returned)
        for name in (PROGRESS_FILE, SAMPLES_FILE):
            JsonLines(run_folder / name).rewind(state.step, training.validate_every)
        checkpoints.check_space(model, training.max_steps // training.checkpoint_every + 1)
        log_setup(spec, model, batches, group, description, state)
    captured = captured_steps(spec, model, optimiser, batches, group, device)
    steps = step.StepRunner(spec, model, optimiser, batches, group, device, stop, validation.vocab_size, captured)
    cost = CostCounter(run_folder, device, description, state.step)
    return trainer.Trainer(
        steps, state, checkpoints, validation, progress, cost, description, save_every_s, read_corpus(corpus).vocabulary
    )


def restore(
    checkpoints: Checkpoints,
    model: torch.nn.Module,
    optimiser: Optimiser,
    group: distributed.Group,
    device: torch.device,
    description: Machine,
) -> TrainingState:
    """Load the newest whole checkpoint into `model`, chosen by the first process on `device`; return its state."""
    point = checkpoints.newest_resume_point() if group.is_first else None
    path = group.from_first(str(point.path) if point else None, device)
    if path is None:
        return TrainingState()
    point = point or ResumePoint.read(Path(path))
    was, now = (Machine.model_validate(machine).model_dump() for machine in (point.metadata["machine"], description))
    if group.is_first and was != now:
        differences = ", ".join(f"{name} {was[name]}, now {now[name]}" for name in now if was[name] != now[name])
        log.warning(
            "%s was written on another machine or with other machine settings (%s): the final weights will equal those "
            "of an uninterrupted run only up to rounding",
            *(path, differences),
        )
    return point.restore(model, optimiser)


def log_setup(
    spec: RunSpec,
    model: Seq2Seq,
    batches: corpus_batches.AnyTrainingBatches,
    group: distributed.Group,
    description: Machine,
    state: TrainingState,
) -> None:
    """Log what will be trained, on which data and machine."""
    training = spec.training
    sequences = {"parallel": "pairs", "text": "sentences", "speech": "utterances"}[spec.model.reads]
    left_out = f"{sequences} over {training.max_length} subwords" if spec.model.reads == "parallel" else sequences
    where, millions = f"{spec.name} on {spec.dataset} at scale {spec.scale}", count_parameters(model) / 1e6
    log.info("%s: %.2f M parameters", where, millions)
    log.info(
        "  modules, including frozen ones: %s", ", ".join(f"{k} {n:,}" for k, n in parameters_by_part(model).items())
    )
    log.info(
        "  %s of %s, %d per epoch; padding %.1f %%; %d %s left out",
        *(count_of(training.max_steps, "step"), format_step_size(training, batches, sequences), len(batches)),
        *(100 * batches.padding, batches.left_out, left_out),
    )
    log.info(
        "  %s on %s, %s, %s, torch %s; %s",
        *(description.precision(training.precision), description.device, count_of(description.threads, "thread")),
        *(count_of(group.size, "process", "processes"), description.torch),
        f"resumed after step {state.step}" if state.step else "from the start",
    )
    micro_batches = len(batches.largest_micro_batches())
    if micro_batches % group.size:
        log.warning(
            "  about %d micro-batches per step cannot be shared equally by %d processes: some will wait; lower "
            "training.%s (now %d)",
            *(micro_batches, group.size, guards.micro_batch_setting(spec), batches.micro_batch_positions),
        )


def format_step_size(training: TrainingConfig, batches: corpus_batches.AnyTrainingBatches, sequences: str) -> str:
    """Return in words how much data a training step uses; its `sequences` are pairs, sentences or utterances."""
    if training.sentences_per_update:
        return f"{training.sentences_per_update} {sequences}"
    return f"{training.tokens_per_update} tokens per side ({batches.sequences // len(batches)} {sequences})"

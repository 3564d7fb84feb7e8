"""Training steps of a case by the trainer itself, counted in the last one, when caches are filled."""

import contextlib
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import torch
from cases import CHARACTERS, WORDS, Case
from counting import Count, Counts
from real_project import project_at
from torch._subclasses.fake_tensor import FakeTensorMode

from pipeline.config import RunSpec
from pipeline.core.artifacts import RunId
from pipeline.data.batches.corpus_batches import AnyBatch
from pipeline.models.layers.positions import cached_indices
from pipeline.papers.project import Project
from pipeline.planning.calibrate import random_batch
from pipeline.training.captured_steps import CapturedSteps
from pipeline.training.distributed import Group
from pipeline.training.graph_cache import Recorder, ShapeGrid
from pipeline.training.machine import autocast
from pipeline.training.optimiser import Optimiser, Schedule
from pipeline.training.run_model import build_run_model
from pipeline.training.state import TrainingState
from pipeline.training.step import AsyncScalars, PreparedStep, StepRunner
from pipeline.training.trainer import Trainer

STEPS = 2
NEVER = 1 << 20
"""Step of the end, which no case reaches; before it, branch weights of a Weighted Transformer are not frozen."""


@cache
def project() -> Project:
    return project_at(Path("work"), scale="paper")


def spec_of(system: str) -> RunSpec:
    """Return settings at the papers' own scale; the data does not matter."""
    return project().run_spec(RunId(*system.split("/"), "wmt14-en-de", 1))


def vocabulary(spec: RunSpec) -> int:
    return CHARACTERS if spec.model.reads == "speech" or "lm-source" in spec.system else WORDS


def batches_of(spec: RunSpec, case: Case) -> SimpleNamespace:
    """Made-up micro-batches of one process instead of a corpus."""
    vocab = vocabulary(spec)
    corpus = SimpleNamespace(src_vocab=vocab, tgt_vocab=vocab, kind=spec.model.reads)
    update = [random_batch(spec, corpus, case.rows, case.src, case.tgt) for _ in range(case.micro_batches)]
    tokens = sum(batch.num_tokens for batch in update)
    return SimpleNamespace(
        micro_batches=lambda *_: update,
        step_data=lambda *_: (update, tokens, case.rows * case.micro_batches),
        micro_batch_positions=case.rows * max(case.src, case.tgt),
    )


class StepsOnly(Trainer):
    """Trainer without checkpoints."""

    def saving_is_due(self) -> bool:
        return False


class CountedSteps(StepRunner):
    """Steps that end after the second, which is counted."""

    def run(self, step: int, prepared: PreparedStep, annealings: int) -> AsyncScalars:
        if step == STEPS:
            raise StopIteration
        self.counting.now, self.counting.saved = Counts(), {}
        return super().run(step, prepared, annealings)

    def backward(self, step: int, batch: AnyBatch, divisor: float) -> torch.Tensor:
        """Before the counted step, do only what that finds done: caches of speech models and the optimiser's state."""
        if step == STEPS - 1:
            return super().backward(step, batch, divisor)
        if self.spec.model.reads == "speech":  # their indices (cached_indices)
            with torch.no_grad(), autocast(self.device, self.spec):
                self.model.loss(batch.to(self.device), self.spec.training.label_smoothing)
        for weight in self.optimiser.parameters:
            weight.grad = torch.zeros_like(weight)
        return torch.zeros(2, device=self.device)


def trainer_of(
    kind: type[StepRunner],
    case: Case,
    device: torch.device,
    recorder: Recorder | None = None,
    capturing: type[CapturedSteps] = CapturedSteps,
) -> Trainer:
    """Build a trainer of the case's system that only runs steps.

    Args:
        kind: Class of its steps.
        case: Sizes and system.
        device: Where it trains.
        recorder: Captures the steps, if given.
        capturing: Class of the captured steps.
    """
    spec = spec_of(case.system)
    every = dict.fromkeys(("max_steps", "validate_every", "checkpoint_every"), NEVER)
    model = spec.model if case.dropout else spec.model.model_copy(update={"dropout": 0.0})
    spec = spec.model_copy(update={"model": model, "training": spec.training.model_copy(update=every)})
    vocab, batches = vocabulary(spec), batches_of(spec, case)
    with device:
        model = build_run_model(spec, (vocab, vocab))
    idle = SimpleNamespace(
        in_background=contextlib.nullcontext,
        count=lambda *_: None,
        monitor=lambda *_: None,
        vocab_size=vocab,
        run_folder=Path("."),
        signal=None,
    )
    optimiser = Optimiser(model, Schedule(spec.model, spec.training), spec.training)
    grid = ShapeGrid([(*batch.src_shape, batch.tgt_out.shape[1]) for batch in batches.micro_batches()])
    group = Group(0, case.ranks)
    captured = capturing(spec, model, optimiser, group, device, grid, recorder) if recorder else None
    steps = kind(spec, model, optimiser, batches, group, device, idle, vocab, captured)
    return StepsOnly(steps, TrainingState(), idle, idle, idle, idle, machine=None, save_every_s=1e9, vocabulary="")


def count(case: Case) -> Counts:
    with FakeTensorMode(allow_non_fake_inputs=True), Count() as counting:
        cached_indices.cache_clear()
        trainer = trainer_of(CountedSteps, case, torch.device("cuda"))
        with torch.autograd.graph.saved_tensors_hooks(counting.keep, lambda kept: kept):
            trainer.steps.counting = counting
            with contextlib.suppress(StopIteration):
                trainer.train()
    counting.now.without_cuda = sorted(counting.without_cuda)
    return counting.now

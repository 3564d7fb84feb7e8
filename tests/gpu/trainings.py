"""An update of a training, by the trainer itself: its last, so that everything that is made once is there."""

import contextlib
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import torch
from cases import CHARACTERS, WORDS, Case
from counting import Count, Counts
from planning_project import project_at
from torch._subclasses.fake_tensor import FakeTensorMode

from pipeline.config import RunSpec
from pipeline.core.artifacts import RunId
from pipeline.data.batches.shape_grid import ShapeGrid
from pipeline.models.layers.padding import cached_indices
from pipeline.papers.project import Project
from pipeline.planning.calibrate import random_batch
from pipeline.training.captured_steps import CapturedSteps
from pipeline.training.compiled_layers import CompiledLayers
from pipeline.training.distributed import Group
from pipeline.training.graph_cache import Recorder
from pipeline.training.optimiser import Optimiser
from pipeline.training.parts import build_run
from pipeline.training.schedule import Schedule
from pipeline.training.state import TrainingState
from pipeline.training.trainer import Trainer
from pipeline.training.updates import Numbers, Update

UPDATES = 2


@cache
def project() -> Project:
    return project_at(Path("work"), scale="paper")


def spec_of(system: str) -> RunSpec:
    """At the papers' own scale; on which data does not matter."""
    return project().run_spec(RunId(*system.split("/"), "wmt14-en-de", 1))


def vocabulary(spec: RunSpec) -> int:
    return CHARACTERS if spec.model.reads == "speech" or "lm-source" in spec.system else WORDS


def batches_of(spec: RunSpec, case: Case) -> SimpleNamespace:
    """Made-up micro-batches of one process, in the place of a corpus."""
    vocab = vocabulary(spec)
    corpus = SimpleNamespace(src_vocab=vocab, tgt_vocab=vocab, kind=spec.model.reads)
    update = [random_batch(spec, corpus, case.rows, case.src, case.tgt) for _ in range(case.micro_batches)]
    tokens = sum(batch.num_tokens for batch in update)
    return SimpleNamespace(
        micro_batches=lambda *_: update, step_size=lambda _: (tokens, case.rows * case.micro_batches)
    )


class UpdatesAlone(Trainer):
    """Without what comes between updates."""

    def saving_is_due(self) -> bool:
        return False


class Counted(UpdatesAlone):
    """Ends after the second update, from the beginning of which it is counted."""

    def do(self, step: int, update: Update) -> Numbers:
        if step == UPDATES:
            raise StopIteration
        self.counting.now, self.counting.saved = Counts(), {}
        return super().do(step, update)


def trainer_of(
    kind: type[UpdatesAlone],
    case: Case,
    device: torch.device,
    recorder: Recorder | None = None,
    compiled: bool = False,
) -> UpdatesAlone:
    """What trains the case's system; does no more than updates, captured by `recorder` if there is one.

    compiled: whether its layers are.
    """
    spec = spec_of(case.system)
    every = {"max_steps": 100, "validate_every": 100, "checkpoint_every": 100}
    spec = spec.model_copy(update={"training": spec.training.model_copy(update=every)})
    vocab, batches = vocabulary(spec), batches_of(spec, case)
    with device:
        model = build_run(spec, (vocab, vocab))
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
    layers = CompiledLayers(model) if compiled else None
    captured = CapturedSteps(spec, model, optimiser, device, grid, recorder, layers) if recorder else None
    return kind(
        spec=spec,
        model=model,
        optimiser=optimiser,
        batches=batches,
        state=TrainingState(),
        group=Group(0, case.ranks),
        device=device,
        checkpoints=idle,
        validation=idle,
        progress=idle,
        cost=idle,
        stop=idle,
        machine=None,
        save_every_s=1e9,
        captured=captured,
    )


def count(case: Case) -> Counts:
    with FakeTensorMode(allow_non_fake_inputs=True), Count() as counting:
        cached_indices.cache_clear()
        trainer = trainer_of(Counted, case, torch.device("cuda"))
        with torch.autograd.graph.saved_tensors_hooks(counting.keep, lambda kept: kept):
            trainer.counting = counting
            with contextlib.suppress(StopIteration):
                trainer.train()
    counting.now.without_cuda = sorted(counting.without_cuda)
    return counting.now

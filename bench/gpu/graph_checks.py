"""Check on a GPU that replayed CUDA graphs compute the same steps as eager mode, even after graphs are captured again.

    PYTHONPATH=.:tests/helpers:tests/gpu python bench/gpu/graph_checks.py [--only CASE …] [--json FILE]

Each case trains a few steps on padded batches of two shapes in four ways: with graphs; eagerly; with one graph kept;
and resumed. With one graph kept, all graphs are dropped after half of the steps. The check prints whether the weights
have the same bytes, and the largest difference relative to the largest weight. It fails if they differ, or in speech by
more than SPEECH_TOLERANCE.
Compiled layers and Triton kernels also train without dropout. Their losses and gradient norms must agree with those
of plain eager steps, within the bounds of agreement.py.

The case "broken capture" reads a number from the device during a capture: training must then continue eagerly.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
import trainings
from agreement import WITHOUT_DROPOUT, Results, check_agreement
from cases import TRAININGS, Case
from compiled_layers import CompiledSteps

from pipeline.config import DecodingConfig
from pipeline.data.batches.corpus_batches import AnyBatch
from pipeline.decoding.captured_search import CapturedSearch
from pipeline.models import kernels
from pipeline.planning.calibrate import random_batch
from pipeline.search.beam_search import beam_search
from pipeline.training.captured_steps import CapturedSteps
from pipeline.training.checkpoint import resume_tensors
from pipeline.training.graph_cache import CudaRecorder, Recorder, ShapeGrid
from pipeline.training.machine import choose_device, prepare
from pipeline.training.run_model import build_run_model
from pipeline.training.step import PreparedStep, StepRunner
from pipeline.training.tensor_file import load_into
from pipeline.training.trainer import Trainer

STEPS, SEED = 6, 3
LEAST_ALIKE = 0.9
"""Least share of sentences for which captured and eager searches find the same; 0.95 was measured."""
SPEECH_TOLERANCE = 1e-3
"""Largest difference of weights if sums have no fixed order."""
BROKEN, COMPILED, SEARCH = "broken capture", "base, compiled layers", "captured search"
TRITON = ("base, Triton kernels", "Weighted Transformer, Triton kernels")
CASES = {
    name: TRAININGS[name]
    for name in (
        *("base, 8 GPUs", "base, 2 micro-batches", "Weighted Transformer", "DL4MT", "NTM-RNN-EMB", "ConvS2S"),
        *("language model", "CTC", "attention recogniser", "Cold Fusion", "Cold Fusion, translation"),
        "CTC and attention",
    )
} | {
    BROKEN: TRAININGS["DL4MT"],
    SEARCH: TRAININGS["base, 8 GPUs"],
    COMPILED: replace(TRAININGS["base, 8 GPUs"], rows=96),
    TRITON[0]: TRAININGS["base, 8 GPUs"],
    TRITON[1]: TRAININGS["Weighted Transformer"],
}


class Refusing:
    """Records nothing: all steps are eager."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        raise RuntimeError("refused")

    def release(self) -> None:
        pass


def batches(case: Case) -> list[list[AnyBatch]]:
    """Micro-batches of two shapes in turn, less than which the batches are."""
    spec = trainings.spec_of(case.system)
    vocab = trainings.vocabulary(spec)
    corpus = SimpleNamespace(src_vocab=vocab, tgt_vocab=vocab, kind=spec.model.reads)
    sizes = [(case.rows - 3, case.src - 1, case.tgt - 1), (case.rows // 2, case.src, case.tgt - 2)]
    torch.manual_seed(SEED)
    return [[random_batch(spec, corpus, *sizes[step % 2]) for _ in range(case.micro_batches)] for step in range(STEPS)]


def trainer_of(
    case: Case, device: torch.device, recorder: Recorder, capturing: type[CapturedSteps] = CapturedSteps
) -> Trainer:
    torch.manual_seed(SEED)
    trainer = trainings.trainer_of(StepRunner, replace(case, ranks=1), device, recorder, capturing)
    trainer.model.train()
    trainer.steps.captured.grid = ShapeGrid([(case.rows, case.src, case.tgt), (case.rows // 2 + 2, case.src, case.tgt)])
    return trainer


def train(trainer: Trainer, steps: range, case: Case) -> list[list[float]]:
    """Do some steps; return the summed loss and the gradient norm of each."""
    given, found = batches(case), []
    for step in steps:
        parts = [trainer.steps.captured.fitted(batch) for batch in given[step]]
        tokens = sum(batch.num_tokens for batch in parts)
        prepared = PreparedStep(parts, tokens, case.rows, 0.0)
        loss, *_, norm = trainer.steps.replay(trainer.steps.captured, step, prepared, 0).values
        found.append([loss, norm])
    return found


def state(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in resume_tensors(trainer.model, trainer.optimiser).items()}


def compared(
    form: str, found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], case: Case
) -> tuple[bool, float]:
    """Return whether all bytes agree, and the largest difference over the largest value of a tensor.

    Args:
        form: What the steps were that are compared with others.
        found: Weights and moments after them.
        expected: Those after the others.
        case: The case; its steps have a fixed order of sums unless it is one of speech.

    Raises:
        ValueError: The difference is too large.
    """
    same, differences = found.keys() == expected.keys(), [0.0]
    for name, value in expected.items():
        same &= torch.equal(found[name], value)
        scale = float(value.abs().max()) or 1.0
        differences.append(float((found[name] - value).abs().max()) / scale)
    largest = float(torch.tensor(differences).max())  # unlike Python's, it is not a number if one is not
    if not same and not (trainings.spec_of(case.system).model.reads == "speech" and largest <= SPEECH_TOLERANCE):
        raise ValueError(f"{form} end in other weights than captured ones: largest difference {largest:.2g}")
    return same, largest


def require_graphs(form: str, trainer: Trainer) -> None:
    """Check that a trainer recorded all its steps.

    Raises:
        ValueError: It trained eagerly instead.
    """
    if failure := trainer.steps.captured.graphs.failure:
        raise ValueError(f"{form} were not captured: {failure}")


def check(case: Case, device: torch.device, capturing: type[CapturedSteps] = CapturedSteps) -> dict[str, object]:
    began = time.perf_counter()
    trainer = trainer_of(case, device, CudaRecorder(device), capturing)
    steps = train(trainer, range(STEPS // 2), case)
    half, seconds = state(trainer), time.perf_counter() - began
    steps += train(trainer, range(STEPS // 2, STEPS), case)
    whole = state(trainer)
    require_graphs("steps", trainer)
    row: dict[str, object] = {"seconds": round(seconds, 1), "losses": [loss for loss, _ in steps]}
    del trainer
    eager = trainer_of(case, device, Refusing(), capturing)
    row["eager losses"] = [loss for loss, _ in train(eager, range(STEPS), case)]
    row["eager"] = compared("eager steps", state(eager), whole, case)
    del eager
    evicting = trainer_of(case, device, CudaRecorder(device), capturing)
    evicting.steps.captured.graphs.most = 1
    train(evicting, range(STEPS // 2), case)
    evicting.steps.captured.forget()
    train(evicting, range(STEPS // 2, STEPS), case)
    require_graphs("steps recorded again", evicting)
    row["recorded again"] = compared("steps recorded again", state(evicting), whole, case)
    del evicting
    resumed = trainer_of(case, device, CudaRecorder(device), capturing)
    load_into(resumed.model, {name[6:]: value for name, value in half.items() if name.startswith("model.")})
    resumed.optimiser.load_tensors({name[5:]: value for name, value in half.items() if name.startswith("adam.")})
    train(resumed, range(STEPS // 2, STEPS), case)
    require_graphs("resumed steps", resumed)
    row["resumed"] = compared("resumed steps", state(resumed), whole, case)
    return row


def steps_without_dropout(
    case: Case, device: torch.device, recorder: Recorder, capturing: type[CapturedSteps]
) -> Results:
    """Train without dropout; return losses and gradient norms."""
    bare = replace(case, dropout=False)
    losses, norms = torch.tensor(train(trainer_of(bare, device, recorder, capturing), range(STEPS), bare)).T
    return {"losses": [losses], "gradient norms": [norms]}


def check_form(
    form: str, case: Case, device: torch.device, capturing: type[CapturedSteps] = CapturedSteps
) -> dict[str, object]:
    """Check captured steps in a form that replaces plain layers, also against plain eager steps."""
    found = steps_without_dropout(case, device, CudaRecorder(device), capturing)
    with mock.patch.object(kernels, "triton_asked_for", lambda: False):
        plain = steps_without_dropout(case, device, Refusing(), CapturedSteps)
    check_agreement(form, found, "plain layers", plain, WITHOUT_DROPOUT)
    return check(case, device, capturing)


def check_broken_capture(case: Case, device: torch.device) -> dict[str, object]:
    """A capture that CUDA breaks off leaves a trainer that goes on, to the same weights."""
    trainer, eager = trainer_of(case, device, CudaRecorder(device)), trainer_of(case, device, Refusing())
    loss = trainer.model.loss

    def reading(batch: AnyBatch, smoothing: float):
        sums = loss(batch, smoothing)
        float(sums.nll)
        return sums

    trainer.model.loss = reading
    train(trainer, range(STEPS), case), train(eager, range(STEPS), case)
    found = compared("eager steps", state(eager), state(trainer), case)
    later = trainer_of(case, device, CudaRecorder(device))
    train(later, range(STEPS), case)
    failures = [each.steps.captured.graphs.failure for each in (trainer, later)]
    if not failures[0] or failures[1]:
        raise ValueError(f"failures of the broken and of a later capture: {failures}")
    return {"failure": failures[0], "eager": found, "later": compared("eager steps", state(eager), state(later), case)}


def check_search(case: Case, device: torch.device) -> dict[str, object]:
    """Replayed searches find the bytes of eager steps on the same padded batch, and mostly what eager searches find."""
    spec = trainings.spec_of(case.system)
    vocab = trainings.vocabulary(spec)
    corpus = SimpleNamespace(src_vocab=vocab, tgt_vocab=vocab, kind=spec.model.reads)
    torch.manual_seed(SEED)
    with device:
        model = build_run_model(spec, (vocab, vocab)).eval()
    config = DecodingConfig(beam_size=4, max_extra_length=5)
    replayed, refused = (CapturedSearch(model, config, recorder) for recorder in (CudaRecorder(device), Refusing()))
    same, alike = True, []
    for rows, length in ((100, 24), (32, 9), (100, 23)):
        batch = random_batch(spec, corpus, rows, length, 4).to(device)
        with torch.autocast(device.type, torch.bfloat16):
            found = [beam_search(model, batch, config, start=start) for start in (replayed.start, None)]
            refused.graphs.failure, refused.graphs.refused = None, set()
            same &= found[0] == beam_search(model, batch, config, start=refused.start)
        alike.append(sum(ours[0].tokens == theirs[0].tokens for ours, theirs in zip(*found, strict=True)) / rows)
    if not same or replayed.graphs.failure or min(alike) < LEAST_ALIKE:
        raise ValueError(f"captured searches differ: {same=}, {alike=}, {replayed.graphs.failure=}")
    return {"same as eager steps": same, "share found by eager searches": alike}


CHECKS = {BROKEN: check_broken_capture, SEARCH: check_search}
CHECKS |= {COMPILED: partial(check_form, "compiled layers", capturing=CompiledSteps)}
CHECKS |= dict.fromkeys(TRITON, partial(check_form, "Triton kernels"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*CASES], metavar="CASE", help="(default: all)")
    parser.add_argument("--json", type=Path, help="file for the findings, written after each case")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    device = choose_device("cuda", local_rank=0)
    found: dict[str, dict[str, object]] = {}
    for name in args.only or CASES:
        case = CASES[name]
        speech = trainings.spec_of(case.system).model.reads == "speech"
        prepare(device, 1, strict=not speech)
        try:
            with mock.patch.object(kernels, "triton_asked_for", lambda asked=name in TRITON: asked):
                found[name] = CHECKS.get(name, check)(case, device)
        except Exception as error:  # the others can be checked all the same
            logging.exception("%s", name)
            found[name] = {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
        print(name, json.dumps(found[name]), flush=True)
        torch.cuda.empty_cache()
        if args.json:
            args.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    sys.exit(any("failed" in row for row in found.values()))


if __name__ == "__main__":
    main()

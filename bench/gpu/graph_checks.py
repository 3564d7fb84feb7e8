"""Check on a GPU that steps replayed as CUDA graphs are those of eager mode, also when graphs are recorded again.

    PYTHONPATH=.:tests/helpers:tests/gpu python bench/gpu/graph_checks.py [--only CASE …] [--json FILE]

Each case trains a few steps on padded batches of two shapes, in four ways. The steps are graphs; eager; graphs of which
one is kept; and new graphs after half of the steps. The check prints whether the weights are the same bytes, and the
largest difference, in units of the largest weight. "broken capture" asks the device for a number while a step is
recorded: training has to go on eagerly.
"""

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
import trainings
from cases import TRAININGS, Case
from compiled_layers import CompiledSteps

from pipeline.config import DecodingConfig
from pipeline.data.batches.corpus_batches import AnyBatch
from pipeline.decoding.captured_search import CapturedSearch
from pipeline.models.kernels import gpu
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


def trainer_of(case: Case, device: torch.device, recorder: Recorder) -> Trainer:
    torch.manual_seed(SEED)
    capturing = CompiledSteps if case == CASES[COMPILED] else CapturedSteps
    trainer = trainings.trainer_of(StepRunner, replace(case, ranks=1), device, recorder, capturing)
    trainer.model.train()
    trainer.steps.captured.grid = ShapeGrid([(case.rows, case.src, case.tgt), (case.rows // 2 + 2, case.src, case.tgt)])
    return trainer


def train(trainer: Trainer, steps: range, case: Case) -> list[float]:
    """Do some steps; returns the summed loss of each."""
    given, losses = batches(case), []
    for step in steps:
        parts = [trainer.steps.captured.fitted(batch) for batch in given[step]]
        tokens = sum(batch.num_tokens for batch in parts)
        prepared = PreparedStep(parts, tokens, case.rows, 0.0)
        losses.append(trainer.steps.replay(trainer.steps.captured, step, prepared, 0).values[0])
    return losses


def state(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in resume_tensors(trainer.model, trainer.optimiser).items()}


def compared(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> tuple[bool, float]:
    """Return whether all bytes agree, and the largest difference over the largest value of a tensor."""
    same, largest = found.keys() == expected.keys(), 0.0
    for name, value in expected.items():
        same &= torch.equal(found[name], value)
        scale = float(value.abs().max()) or 1.0
        largest = max(largest, float((found[name] - value).abs().max()) / scale)
    return same, largest


def check(case: Case, device: torch.device) -> dict[str, object]:
    recorder, began = CudaRecorder(device), time.perf_counter()
    trainer = trainer_of(case, device, recorder)
    losses = train(trainer, range(STEPS // 2), case)
    half, seconds = state(trainer), time.perf_counter() - began
    losses += train(trainer, range(STEPS // 2, STEPS), case)
    whole, failure = state(trainer), trainer.steps.captured.graphs.failure
    row: dict[str, object] = {"failure": failure, "seconds": round(seconds, 1), "losses": losses}
    del trainer
    eager = trainer_of(case, device, Refusing())
    row["eager losses"] = train(eager, range(STEPS), case)
    row["eager"] = compared(state(eager), whole)
    del eager
    evicting = trainer_of(case, device, CudaRecorder(device))
    evicting.steps.captured.graphs.most = 1
    train(evicting, range(STEPS), case)
    row["recorded again"] = compared(state(evicting), whole)
    del evicting
    resumed = trainer_of(case, device, CudaRecorder(device))
    load_into(resumed.model, {name[6:]: value for name, value in half.items() if name.startswith("model.")})
    resumed.optimiser.load_tensors({name[5:]: value for name, value in half.items() if name.startswith("adam.")})
    train(resumed, range(STEPS // 2, STEPS), case)
    row["resumed"] = compared(state(resumed), whole)
    return row


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
    found = compared(state(trainer), state(eager))
    later = trainer_of(case, device, CudaRecorder(device))
    train(later, range(STEPS), case)
    return {
        "failure": trainer.steps.captured.graphs.failure,
        "eager": found,
        "recorded later": [later.steps.captured.graphs.failure, *compared(state(later), state(eager))],
    }


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
    return {"failure": replayed.graphs.failure, "same as eager steps": same, "share found by eager searches": alike}


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
            with mock.patch.object(gpu, "triton_asked_for", lambda asked=name in TRITON: asked):
                found[name] = {BROKEN: check_broken_capture, SEARCH: check_search}.get(name, check)(case, device)
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

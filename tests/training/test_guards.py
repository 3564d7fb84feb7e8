import json
import math
import re
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.models.transformer.model import Transformer
from pipeline.training import guards
from pipeline.training.job import train_run
from pipeline.training.step import StepRunner


def no_number(loss, *args):
    sums = loss(*args)
    return sums._replace(loss=sums.loss * math.nan)


@pytest.fixture
def spoil(monkeypatch):
    """Makes the loss of the updates that are named not a number."""

    def spoil_updates(updates):
        backward = StepRunner.backward

        def spoilt(self, step, batch, tokens):
            with pytest.MonkeyPatch.context() as patched:
                if step in updates:
                    patched.setattr(self.model, "loss", partial(no_number, self.model.loss))
                return backward(self, step, batch, tokens)

        monkeypatch.setattr(StepRunner, "backward", spoilt)

    return spoil_updates


def test_an_update_that_is_not_finite_is_left_out_and_counted(new_run, spoil, caplog):
    run = new_run()
    spoil({3, 4, 8})
    train_run(run, threads=1)
    done = read_json(run / "done.json")
    assert done["skipped_updates"] == 3
    assert math.isfinite(done["dev"]["perplexity"])
    assert math.isfinite(done["train"]["loss_per_token"])
    assert re.search(r"not finite in step 8 \(\d+ sequences x \d+ \+ \d+ positions.*skipped, 3 so far", caplog.text)


def test_too_many_skipped_steps_in_a_row_end_the_training(new_run, spoil, monkeypatch):
    monkeypatch.setattr(guards, "MOST_SKIPPED_IN_A_ROW", 4)
    run = new_run(max_steps=30)
    spoil(range(9, 100))
    with pytest.raises(
        UserError, match=r"in step 16 \(.*positions.*4 skipped in a row, again .* 13; last good .*step-12\.saf.*lr_fac"
    ):
        train_run(run, threads=1)
    assert not (run / "done.json").exists()


def test_a_good_update_in_between_ends_the_row(new_run, spoil, monkeypatch):
    monkeypatch.setattr(guards, "MOST_SKIPPED_IN_A_ROW", 4)
    run = new_run()
    spoil({0, 1, 2, 4, 5, 6, 8, 9, 10})
    train_run(run, threads=1)
    assert read_json(run / "done.json")["skipped_updates"] == 9


def test_a_gradient_that_is_not_finite_changes_no_weight(new_run, monkeypatch):
    run = new_run(max_steps=2)
    seen = []
    accumulate = StepRunner.accumulate

    def infinite(self, step, *args):
        numbers = accumulate(self, step, *args)
        seen.append([weight.detach().clone() for weight in self.model.parameters()])
        return torch.cat((numbers[:-1], torch.tensor([math.inf]))) if step == 0 else numbers

    monkeypatch.setattr(StepRunner, "accumulate", infinite)
    train_run(run, threads=1)
    assert all(torch.equal(*pair) for pair in zip(*seen, strict=True))


def test_async_stats_skip_the_same_steps_with_the_same_bytes(new_run, spoil, outcome, monkeypatch):
    """Adadelta keeps statistics of each step; test_optimiser.py skips steps of every optimiser."""
    at_once, late = (new_run(name, optimiser="adadelta") for name in ("at-once", "late"))
    spoil({3, 4, 8})
    train_run(at_once, threads=1)
    begin = StepRunner.__post_init__
    monkeypatch.setattr(StepRunner, "__post_init__", lambda self: begin(self) or setattr(self, "async_stats", True))
    train_run(late, threads=1)
    assert outcome(late) == outcome(at_once) and read_json(late / "done.json")["skipped_updates"] == 3


@pytest.mark.parametrize(
    "refusal",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_out_of_memory_before_first_step_names_batch_and_setting(new_run, monkeypatch, refusal):
    def refuse(self, batch, label_smoothing):
        raise refusal

    monkeypatch.setattr(Transformer, "loss", refuse)
    run = new_run()
    with pytest.raises(
        UserError, match=r"out of memory in step 0.*\d+ sequences x \d+ \+ \d+ .*micro_batch_tokens to 75 \(now"
    ):
        train_run(run, threads=1)
    assert not (run / "progress.jsonl").exists()


@pytest.mark.parametrize("reads", ["speech", "text"])
def test_out_of_memory_without_micro_batch_names_unit_of_model(reads):
    limits = {"micro_batch_frames": 4000, "micro_batch_tokens": 600}
    spec = SimpleNamespace(name="x", model=SimpleNamespace(reads=reads), training=SimpleNamespace(**limits))
    key = "micro_batch_frames to 2000" if reads == "speech" else "micro_batch_tokens to 300"
    with pytest.raises(UserError, match=key), guards.out_of_memory_explained(spec, 3, []):
        raise MemoryError


def test_other_errors_are_not_taken_for_a_lack_of_memory(new_run, monkeypatch):
    def fail(self, batch, label_smoothing):
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(Transformer, "loss", fail)
    with pytest.raises(RuntimeError, match="shapes differ"):
        train_run(new_run(), threads=1)


def test_clipping_bounds_the_norm_and_logs_the_unclipped_one(new_run, monkeypatch):
    run = new_run(clip_norm=0.01, max_steps=3)
    norms = []
    accumulate = StepRunner.accumulate

    def measured(self, *args):
        result = accumulate(self, *args)
        norms.append(float(torch.linalg.vector_norm(torch.cat([g.flatten() for g in self.optimiser.gradients()]))))
        return result

    monkeypatch.setattr(StepRunner, "accumulate", measured)
    train_run(run, threads=1)
    assert norms == pytest.approx([0.01] * 3, rel=1e-3)
    first = json.loads((run / "progress.jsonl").read_text().split("\n")[0])
    assert first["gradient_norm"] > 0.1

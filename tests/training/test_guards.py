import gc
import math
import random
import re
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from made_records import data_loss
from run_folders import json_lines
from safetensors.torch import load_file
from test_survival import train_with_kills

from pipeline.analysis.training_curves import loss_curve
from pipeline.config import load_run
from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.core.records.training import BestLoss, Loss
from pipeline.data.batches.corpus_batches import training_batches
from pipeline.models.transformer.model import Transformer
from pipeline.training import captured_steps, guards, job
from pipeline.training.checkpoint_files import weight_files
from pipeline.training.job import train_run
from pipeline.training.optimiser import Optimiser
from pipeline.training.state import TrainingState
from pipeline.training.step import StepRunner
from pipeline.training.trainer import Trainer


def no_number(loss, *args):
    sums = loss(*args)
    return sums._replace(loss=sums.loss * math.nan)


def spoil(monkeypatch, updates) -> None:
    """Make the loss of some updates not a number."""
    backward = StepRunner.backward

    def spoilt(self, step, batch, tokens):
        with pytest.MonkeyPatch.context() as patched:
            if step in updates:
                patched.setattr(self.model, "loss", partial(no_number, self.model.loss))
            return backward(self, step, batch, tokens)

    monkeypatch.setattr(StepRunner, "backward", spoilt)


def test_an_update_that_is_not_finite_is_left_out_and_counted(train, monkeypatch, caplog):
    """The message names the first lines of the step, in rising order and counted from 1, as an editor shows them."""
    spoil(monkeypatch, {3, 4, 8})
    done = read_json((run := train()) / "done.json")
    assert done["skipped_updates"] == 3
    assert math.isfinite(done["dev"]["perplexity"])
    assert math.isfinite(done["train"]["loss_per_token"])
    lines = [line for line in json_lines(run / "progress.jsonl") if line["event"] == "progress"]
    assert {line["step"]: line["skipped"] for line in lines if line["skipped"]} == {4: 1, 5: 1, 9: 1}
    assert "NaN" not in (run / "progress.jsonl").read_text()
    said = r"in step 8 \(\d+ sequences x \d+ \+ \d+ positions; lines (.*) and (\d+) more of the training split\).*"
    named, more = re.search(rf"not finite {said}skipped, 3 so far", caplog.text).groups()
    lines = sorted(line + 1 for line in training_batches(load_run(run / "run.yaml")).sequences_of(8).tolist())
    assert [int(line) for line in named.split(", ")] == lines[:10] and int(more) == len(lines) - 10


def test_interval_of_skipped_steps_alone_has_no_training_loss(train, monkeypatch):
    spoil(monkeypatch, range(8, 12))
    run = train(max_steps=12, validate_every=4)
    lines = [line for line in json_lines(run / "progress.jsonl") if line["event"] == "validation"]
    assert [line["train"] is None for line in lines] == [False, False, True]
    assert read_json(run / "done.json")["train"] is None
    curve = loss_curve(run)
    assert curve.steps.tolist() == [4, 8, 12] and curve.train[1] == curve.train[2] > 0


def test_too_many_skipped_steps_in_a_row_end_the_training(new_run, monkeypatch):
    monkeypatch.setattr(guards, "MOST_SKIPPED_IN_A_ROW", 4)
    run = new_run(max_steps=30)
    spoil(monkeypatch, range(9, 100))
    message = r"in step 16 \(.*positions.*4 skipped in a row, again .* 13; last good .*step-12\.saf.*lr_fac"
    with pytest.raises(UserError, match=message):
        train_run(run, threads=1)
    assert not (run / "done.json").exists()


def test_a_good_update_in_between_ends_the_row(train, monkeypatch):
    monkeypatch.setattr(guards, "MOST_SKIPPED_IN_A_ROW", 4)
    spoil(monkeypatch, {0, 1, 2, 4, 5, 6, 8, 9, 10})
    assert read_json(train() / "done.json")["skipped_updates"] == 9


def test_a_gradient_that_is_not_finite_changes_no_weight(train, monkeypatch):
    seen, accumulate = [], StepRunner.accumulate

    def infinite(self, step, *args):
        numbers = accumulate(self, step, *args)
        seen.append([weight.detach().clone() for weight in self.model.parameters()])
        return torch.cat((numbers[:-1], torch.tensor([math.inf]))) if step == 0 else numbers

    monkeypatch.setattr(StepRunner, "accumulate", infinite)
    train(max_steps=2)
    torch.testing.assert_close(*seen, rtol=0, atol=0)


def test_async_stats_skip_the_same_steps_with_the_same_bytes(train, monkeypatch, outcome):
    """Adadelta keeps statistics of each step; test_optimiser.py skips steps of every optimiser."""
    spoil(monkeypatch, {3, 4, 8})
    at_once = train("at-once", optimiser="adadelta")
    begin = StepRunner.__post_init__  # from now on, results of a step are read while the next one is computed
    monkeypatch.setattr(StepRunner, "__post_init__", lambda self: begin(self) or setattr(self, "async_stats", True))
    late = train("late", optimiser="adadelta")
    assert outcome(late) == outcome(at_once) and read_json(late / "done.json")["skipped_updates"] == 3


@pytest.mark.parametrize(
    "refusal",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to"),
        MemoryError(),
        torch.AcceleratorError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("shapes differ"),
    ],
    ids=str,
)
def test_out_of_memory_before_first_step_names_batch_and_setting(new_run, monkeypatch, refusal):
    """Other errors are raised as they are."""
    monkeypatch.setattr(Transformer, "loss", Mock(side_effect=refusal))
    run = new_run()
    message = r"out of memory in step 0 .*\(\d+ sequences x \d+ \+ \d+ .*lower training.max_length \(now"
    is_other = str(refusal) == "shapes differ"
    with pytest.raises(RuntimeError if is_other else UserError, match="shapes differ" if is_other else message):
        train_run(run, threads=1)
    assert not (run / "progress.jsonl").exists()


UNLIMITED = Transformer.loss


def limit_memory(monkeypatch, positions: int) -> list[int]:
    """Limit the target positions of a micro-batch for which there is memory; return those of the computed ones."""
    computed = []

    def limited(self, batch, label_smoothing):
        if self.training and batch.tgt_out.numel() > positions:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        if self.training:
            computed.append(batch.tgt_out.numel())
        return UNLIMITED(self, batch, label_smoothing)

    monkeypatch.setattr(Transformer, "loss", limited)
    return computed


def test_micro_batches_are_halved_until_they_fit(train, monkeypatch, caplog):
    """The steps are the same, so without dropout the losses agree up to rounding."""
    whole = train("whole", model={"dropout": 0.0})
    computed = limit_memory(monkeypatch, 50)
    halved = train("halved", model={"dropout": 0.0})
    assert max(computed) <= 50 and "out of memory with micro-batches of 75 positions; trying 37" in caplog.text
    found, expected = (read_json(run / "done.json") for run in (halved, whole))
    assert (found["micro_batch"], expected["micro_batch"]) == (37, None)
    assert found["steps"] == expected["steps"]
    assert found["dev"]["nll_per_token"] == pytest.approx(expected["dev"]["nll_per_token"], rel=1e-4)


def test_resumed_training_keeps_its_halved_micro_batches(new_run, train, train_signalled, monkeypatch):
    """It ends in the same bytes, even if more memory is free by then."""
    limit_memory(monkeypatch, 50)
    undisturbed, stopped = train("undisturbed"), new_run("stopped")
    train_signalled(stopped, step=5)
    limit_memory(monkeypatch, 10**6)
    train_run(stopped, threads=1)
    first, second = ((run / "model.safetensors").read_bytes() for run in (undisturbed, stopped))
    assert first == second and read_json(stopped / "done.json")["micro_batch"] == 37


def elements() -> int:
    """The number of elements of all tensors that Python holds now, without garbage."""
    gc.collect()
    return sum(found.numel() for found in gc.get_objects() if type(found) is torch.Tensor)


def test_a_resumed_training_tries_no_second_moments(new_run, train_signalled, monkeypatch):
    """Before the first step, memory is tried with moments of all weights, which a resumed training has already."""
    held, fresh_and_resumed, moments = [], [], []
    backward = StepRunner.backward

    def train(self: Trainer) -> None:
        fresh_and_resumed.append(held[0] - elements())
        moments.append(sum(tensor.numel() for tensor in self.optimiser.tensors().values()))

    run = new_run()
    for resumed in (False, True):
        if resumed:
            train_signalled(run, step=3)
        with monkeypatch.context() as patched:
            held.clear()
            patched.setattr(StepRunner, "backward", lambda *args: held.append(elements()) or backward(*args))
            patched.setattr(Trainer, "train", train)
            patched.setattr(job, "finish", lambda trainer: None)
            train_run(run, threads=1)
    fresh, resumed = fresh_and_resumed
    assert moments[0] == 0 < moments[1] == fresh - resumed


def test_advice_after_halving_names_the_halved_size(new_run, monkeypatch):
    """The setting of 75 positions was halved to 37 before the first step."""
    limit_memory(monkeypatch, 50)
    accumulate = StepRunner.accumulate
    monkeypatch.setattr(
        StepRunner,
        "accumulate",
        lambda self, *step: limit_memory(monkeypatch, 50 if step[0] < 3 else 0) or accumulate(self, *step),
    )
    with pytest.raises(UserError, match=r"out of memory in step 3 .*micro_batch_tokens to 18 \(now 37\)"):
        train_run(new_run(), threads=1)


def one_of_several(faults: list[float], lower_micro_batches) -> StepRunner:
    """Return the steps of one of several processes, which runs out of memory as often as another does."""
    runner, others = StepRunner.__new__(StepRunner), iter(faults)
    runner.spec, runner.captured, runner.device = SimpleNamespace(name="x"), None, torch.device("cpu")
    runner.model = runner.optimiser = None
    runner.spec.model, runner.spec.training = SimpleNamespace(reads="text"), SimpleNamespace(max_length=9)
    runner.group = SimpleNamespace(total=lambda own, device: [own[0] + next(others)])
    runner.batches = SimpleNamespace(micro_batch_positions=8, lower_micro_batches=lower_micro_batches)
    runner._warm_up = lambda step: None
    return runner


def test_all_processes_halve_if_another_one_is_out_of_memory():
    lowered = []
    one_of_several([1.0, 1.0, 0.0], lambda n: lowered.append(n) or True).warm_up_largest_batch(0)
    assert lowered == [4, 4]


def test_one_sequence_too_large_elsewhere_ends_all_processes():
    with pytest.raises(UserError, match=r"x: out of memory.*on another process"):
        one_of_several([1.0], lambda n: False).warm_up_largest_batch(0)


def test_captured_steps_are_made_anew_after_halving(monkeypatch):
    """They are made for the batches that were halved, once for each halving."""
    runner, made = one_of_several([1.0, 1.0, 0.0], lambda n: True), []
    runner.captured = SimpleNamespace()
    monkeypatch.setattr(
        captured_steps, "captured_steps", lambda *of: made.append(of) or SimpleNamespace(number=len(made))
    )
    runner.warm_up_largest_batch(0)
    assert [of[3] for of in made] == [runner.batches] * 2 and runner.captured.number == 2


@pytest.mark.parametrize("reads", ["speech", "text"])
def test_out_of_memory_without_micro_batch_names_unit_of_model(reads):
    limits = {"micro_batch_frames": 4000, "micro_batch_tokens": 600}
    spec = SimpleNamespace(name="x", model=SimpleNamespace(reads=reads), training=SimpleNamespace(**limits))
    key = "micro_batch_frames to 2000" if reads == "speech" else "micro_batch_tokens to 300"
    with (
        pytest.raises(UserError, match=key),
        guards.out_of_memory_explained(guards.out_of_memory_in_step, spec, 3, [], limits[key.split()[0]]),
    ):
        raise MemoryError


def test_clipping_bounds_the_norm_and_logs_the_unclipped_one(train, monkeypatch):
    norms, accumulate = [], StepRunner.accumulate

    def measured(self, *args):
        result = accumulate(self, *args)
        norms.append(float(torch.nn.utils.get_total_norm(self.optimiser.gradients())))
        return result

    monkeypatch.setattr(StepRunner, "accumulate", measured)
    run = train(clip_norm=0.01, max_steps=3)
    assert norms == pytest.approx([0.01] * 3, rel=1e-3)
    assert json_lines(run / "progress.jsonl")[0]["gradient_norm"] > 0.1


SETTINGS = {"max_steps": 24, "validate_every": 6, "checkpoint_every": 4, "keep_checkpoints": 2}
"""Good weights are kept after 4, 12, 16 … updates."""


def explode(monkeypatch, *updates: int, factor: float = 1e27) -> None:
    """Multiply the weights by something huge after some updates."""
    update = Optimiser.step

    @torch.no_grad()
    def exploding(self, number, annealings=0):
        update(self, number, annealings)
        if number in updates:
            for weight in self.weights:
                weight.mul_(factor)

    monkeypatch.setattr(Optimiser, "step", exploding)


def test_diverged_finite_weights_are_rolled_back_and_not_kept(train, monkeypatch, caplog):
    explode(monkeypatch, 14)
    run = train(**SETTINGS)
    done = read_json(run / "done.json")
    assert done["returned"] == {"at": 18, "to": 12} and done["dev"]["nll_per_token"] < 4
    assert "rolling back to" in caplog.text and "continuing from step 18" in caplog.text
    for _, path in weight_files(run):
        assert all(tensor.abs().max() < 100 for tensor in load_file(path).values())


def test_a_training_that_rolled_back_can_be_extended(train, monkeypatch, outcome):
    """It keeps no weights of steps 12, 16 and 20, which it gave up, and had pruned those of step 4 before."""
    explode(monkeypatch, 13)
    settings = SETTINGS | {"validate_every": 11, "keep_checkpoints": 3}
    at_once = train("at-once", **settings | {"max_steps": 28})
    shorter = train("seed1-00000001", **settings)
    assert read_json(shorter / "done.json")["returned"] == {"at": 22, "to": 8}
    assert [step for step, _ in weight_files(shorter)] == [8, 24]
    longer = train("seed1-00000002", **settings | {"max_steps": 28})
    assert read_json(longer / "cost.json")["starts"][-1]["steps"] == 28 - 24
    assert outcome(longer) == outcome(at_once)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e27, float("inf")], ids=["absurd", "infinite"])
def test_training_killed_at_random_rolls_back_once_to_same_bytes(new_run, train, outcome, monkeypatch, factor):
    monkeypatch.setattr(guards, "MOST_SKIPPED_IN_A_ROW", 3)
    explode(monkeypatch, 13, factor=factor)
    undisturbed, disturbed = train("undisturbed", **SETTINGS), new_run("disturbed", **SETTINGS)
    train_with_kills(disturbed, [random.uniform(0.1, 0.5) for _ in range(4)])
    assert read_json(disturbed / "done.json")["returned"]["to"] in (4, 12)
    assert outcome(disturbed) == outcome(undisturbed)


def test_training_stopped_after_a_roll_back_does_not_repeat_it(new_run, monkeypatch):
    run = new_run(**SETTINGS)
    explode(monkeypatch, 7, 20)
    validate = Trainer.validate

    def stopped(self):
        if self.state.step == 18:
            self.stop._note(15, None)
        return validate(self)

    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(Trainer, "validate", stopped)
        train_run(run, threads=1)
    with pytest.raises(UserError, match=r"after step 24, again after rolling back at step 12; last good .*Lower"):
        train_run(run, threads=1)
    assert not (run / "done.json").exists()


def test_divergence_before_any_checkpoint_fails_with_advice(train, monkeypatch):
    explode(monkeypatch, 2)
    with pytest.raises(UserError, match=r"loss is .* after step 6; last good checkpoint: none yet.*lr.*clip_norm"):
        train(**SETTINGS)


@pytest.mark.parametrize(
    ("nll", "best", "sane"),
    [
        *((3.0, None, True), (30.0, 2.0, True), (32.0, 2.0, False), (40.0, 5.0, True)),
        *((float("nan"), None, False), (float("inf"), 5.0, False), (1e27, None, False)),
    ],
)
def test_loss_is_sane_up_to_ten_times_uniform_guess_or_best(nll, best, sane):
    """A uniform guess among 24 symbols costs 3.18 nats."""
    state = TrainingState(best_dev=BestLoss(**dict(data_loss(best)), step=1) if best else None)
    assert state.is_sane(Loss(nll_per_token=nll, perplexity=1, tokens=1), 24) is sane

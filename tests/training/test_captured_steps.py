"""Replayed steps give the same bytes as eager ones, even if graphs are dropped or refused, or the run is interrupted.

A tape of operators stands in for a CUDA graph (tape.py).
"""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from made_records import MACHINE
from tape import TapeRecorder, refuse, taped

from pipeline.config import load_run
from pipeline.models.kernels.autocast import cached_casts
from pipeline.training import setup
from pipeline.training.captured_steps import captured_steps
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.distributed import Group
from pipeline.training.graph_cache import GraphCache
from pipeline.training.ownership import StopRequest
from pipeline.training.specification import run_key
from pipeline.training.trainer import Trainer

CPU = torch.device("cpu")
MICRO_BATCHES = {"one": 200, "several": 80}
SHORT = {"max_steps": 6, "validate_every": 3, "checkpoint_every": 2}
LONG = {"max_steps": 14, "validate_every": 14, "checkpoint_every": 14}
"""So many steps that every shape comes back after another one."""
CASES = [
    ("transformer", "several"),
    ("weighted_transformer", "one"),
    ("weighted_transformer", "several"),
    ("recurrent", "one"),
    ("convolutional", "several"),
]


def no_memory(_: int) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.fixture
def trainer_with(monkeypatch) -> Callable[..., Trainer]:
    """Builds the trainer of a run, whose steps a tape records; `fail` makes recordings fail, `most` are kept."""

    def build(run: Path, fail: Callable[[int], None] = lambda _: None, most: int = 96) -> Trainer:
        monkeypatch.setattr(setup, "captured_steps", taped(fail, most))
        spec, checkpoints = load_run(run / "run.yaml"), Checkpoints(run, run_key(run), keep=20)
        return setup.build_trainer(spec, checkpoints, Group(), CPU, MACHINE, StopRequest(), save_every_s=300)

    return build


def final(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Weights and moments of a training that is done here, to its end."""
    trainer.train()
    return trainer.model.state_dict() | trainer.optimiser.tensors()


def assert_equal(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize(("architecture", "parts"), CASES)
def test_replayed_steps_equal_eager_ones(new_run, trainer_with, architecture, parts):
    settings = {"architecture": architecture, "micro_batch_tokens": MICRO_BATCHES[parts], "clip_norm": 0.5} | SHORT
    replayed, eager = trainer_with(new_run("replayed", **settings)), trainer_with(new_run("eager", **settings), refuse)
    assert_equal(final(replayed), final(eager))
    recorder = replayed.steps.captured.graphs.recorder
    assert recorder.replayed >= 6 and recorder.recorded == len(replayed.steps.captured.graphs.graphs)
    assert replayed.state.since_validation == eager.state.since_validation and replayed.state.dev == eager.state.dev


@pytest.mark.parametrize("optimiser", ["adadelta", "nag"])
def test_every_optimiser_can_be_recorded(new_run, trainer_with, optimiser):
    settings = {"optimiser": optimiser, "schedule": "plateau", "lr": 0.1, "micro_batch_tokens": 200} | SHORT
    replayed, eager = new_run("replayed", **settings), new_run("eager", **settings)
    assert_equal(final(trainer_with(replayed)), final(trainer_with(eager, refuse)))


@pytest.mark.parametrize("parts", MICRO_BATCHES)
def test_steps_without_dropout_are_those_of_an_unpadded_training(new_run, trainer_with, parts):
    settings = {"model": {"dropout": 0.0}, "micro_batch_tokens": MICRO_BATCHES[parts]} | SHORT
    replayed = trainer_with(new_run("replayed", **settings))
    plain = trainer_with(new_run("plain", **settings))
    plain.steps.captured, plain.steps.async_stats = None, False
    final(replayed), final(plain)
    assert replayed.state.dev.nll_per_token == pytest.approx(plain.state.dev.nll_per_token, rel=1e-4)
    assert replayed.state.train.nll_per_token == pytest.approx(plain.state.train.nll_per_token, rel=1e-4)


def test_graphs_are_recorded_for_each_shape_and_frozen_weights(new_run, trainer_with):
    trainer = trainer_with(new_run(architecture="weighted_transformer", micro_batch_tokens=200, **SHORT))
    shapes = {part.signature for step in range(6) for part in trainer.steps.prepare(step).micro_batches}
    assert not trainer.steps.captured.graphs.graphs
    final(trainer)
    recorded = trainer.steps.captured.graphs.graphs
    assert {key[-1] for key in recorded if key[0] != "finish"} == shapes
    assert {key[1] for key in recorded} == {False, True}


@pytest.mark.parametrize("parts", MICRO_BATCHES)
def test_dropped_graphs_are_recorded_again_to_the_same_bytes(new_run, trainer_with, parts):
    settings = {"micro_batch_tokens": MICRO_BATCHES[parts]} | LONG
    few, all_kept = trainer_with(new_run("few", **settings), most=1), trainer_with(new_run("all", **settings))
    assert_equal(final(few), final(all_kept))
    assert few.steps.captured.graphs.recorder.recorded > all_kept.steps.captured.graphs.recorder.recorded
    assert len(few.steps.captured.graphs.graphs) == 1


def test_a_stopped_training_ends_in_the_same_bytes(new_run, trainer_with):
    settings = {"micro_batch_tokens": MICRO_BATCHES["several"]} | SHORT
    undisturbed, run = final(trainer_with(new_run("undisturbed", **settings))), new_run("stopped", **settings)
    first = trainer_with(run)
    first.progress.count = stop_after(first, 3)
    with pytest.raises(SystemExit):
        first.train()
    second = trainer_with(run)
    assert 0 < second.state.step < 6
    assert_equal(final(second), undisturbed)


def stop_after(trainer: Trainer, steps: int) -> Callable[..., None]:
    """Count steps as before, and ask to stop after some."""
    count = trainer.progress.count

    def counted(step: int, *rest) -> None:
        count(step, *rest)
        if step == steps:
            trainer.stop.signal = 15

    return counted


def test_a_failed_recording_is_logged_and_training_goes_on(new_run, trainer_with, caplog):
    trainer = trainer_with(new_run(**SHORT), refuse)
    with caplog.at_level(logging.WARNING):
        final(trainer)
    messages = [record.message for record in caplog.records if "CUDA graphs" in record.message]
    assert messages == [
        "cannot capture steps as CUDA graphs, they run eagerly: RuntimeError: operation not permitted when stream is "
        "capturing"
    ]
    assert trainer.steps.captured.graphs.recorder.recorded == 1


def test_gradients_add_up_if_recording_had_failed_before(new_run, trainer_with):
    settings = {"micro_batch_tokens": MICRO_BATCHES["several"]} | SHORT
    late, early = (trainer_with(new_run(name, **settings), refuse) for name in ("late", "early"))
    early.steps.captured.graphs.failure = "an earlier one"
    assert_equal(final(early), final(late))


def test_graphs_are_dropped_when_memory_is_short(new_run, trainer_with):
    full = {"left": 1}

    def second_fails(number: int) -> None:
        if number > 1 and full["left"]:
            full["left"] -= 1
            raise torch.OutOfMemoryError("CUDA out of memory")

    settings = {"micro_batch_tokens": 200} | SHORT
    short, enough = (
        trainer_with(new_run("short", **settings), second_fails),
        trainer_with(new_run("enough", **settings)),
    )
    assert_equal(final(short), final(enough))
    assert not short.steps.captured.graphs.refused and short.steps.captured.graphs.recorder.released


def test_shapes_without_memory_for_a_graph_are_eager(new_run, trainer_with, caplog):
    settings = {"micro_batch_tokens": 200} | SHORT
    short, enough = trainer_with(new_run("short", **settings), no_memory), trainer_with(new_run("enough", **settings))
    assert_equal(final(short), final(enough))
    assert short.steps.captured.graphs.refused and not short.steps.captured.graphs.failure
    assert "no memory for the CUDA graph of a batch" in caplog.text


@pytest.mark.parametrize("parts", MICRO_BATCHES)
def test_a_step_that_is_not_finite_is_left_out_on_the_device(new_run, trainer_with, parts):
    trainer = trainer_with(new_run(micro_batch_tokens=MICRO_BATCHES[parts], max_steps=4))
    run = trainer.steps.captured.run

    def with_fault(step: int, annealings: int, batches, seeds, divisor: float, known) -> torch.Tensor:
        weights = [weight.detach().clone() for weight in trainer.model.parameters()]
        out = run(step, annealings, batches, seeds, divisor if step != 2 else 3e-39, known)
        unmoved = [torch.equal(first, other) for first, other in zip(weights, trainer.model.parameters(), strict=True)]
        assert all(unmoved) == (step == 2)
        return out

    trainer.steps.captured.run = with_fault
    final(trainer)
    assert trainer.state.skipped_updates == 1


def test_weights_cast_between_replayed_steps_are_current(new_run, trainer_with):
    """Cast weights as a validation on a GPU does; a replay changes weights without changing their version."""
    trainer = trainer_with(new_run(micro_batch_tokens=200, **SHORT))
    weights, run = [*trainer.model.parameters()], trainer.steps.captured.run

    @torch.no_grad()
    def casts() -> tuple[torch.Tensor, ...]:
        return cached_casts(torch.bfloat16, weights)

    def checked(*args) -> torch.Tensor:
        casts()
        versions = tuple(weight._version for weight in weights)
        out = run(*args)
        torch._C._autograd._unsafe_set_version_counter(tuple(weights), versions)
        assert all(torch.equal(cast, weight.bfloat16()) for cast, weight in zip(casts(), weights, strict=True))
        return out

    trainer.steps.captured.run = checked
    final(trainer)
    assert trainer.steps.captured.graphs.recorder.replayed >= 6


def test_rolling_back_drops_the_graphs(new_run, trainer_with):
    trainer = trainer_with(new_run(max_steps=8, checkpoint_every=2, validate_every=2))
    validate = trainer.validate
    trainer.validate = lambda: "diverged" if trainer.state.step == 6 else validate()
    forgotten = []
    forget = trainer.steps.captured.forget
    trainer.steps.captured.forget = lambda: (forgotten.append(trainer.state.step), forget())
    final(trainer)
    assert forgotten == [6] and trainer.state.returned


def test_least_recently_used_graph_is_dropped_first():
    cache = GraphCache[str](TapeRecorder(list), most=2)
    for key in ("a", "b", "a", "c"):
        assert cache.get(key, lambda key=key: key.upper()) == key.upper()
    assert list(cache.graphs) == ["a", "c"]


@pytest.mark.parametrize(("device", "wanted"), [("cpu", True), ("cuda", False)])
def test_capture_is_off_on_a_cpu_or_by_setting(new_run, device, wanted):
    spec = load_run(new_run(cuda_graphs=wanted) / "run.yaml")
    assert captured_steps(spec, None, None, None, Group(), torch.device(device)) is None

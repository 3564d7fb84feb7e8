"""Replayed steps give the same bytes as eager ones, even if graphs are dropped or refused, or the run is interrupted.

A tape of operators stands in for a CUDA graph (tape.py).
"""

import contextlib
import itertools
import logging
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from tape import TapeRecorder, refuse, taped

from pipeline.config import load_run
from pipeline.core.layout import PROGRESS_FILE
from pipeline.core.records.record import read_lines_as
from pipeline.core.records.training import AnyProgress, MonitorLine
from pipeline.models.kernels.autocast import cached_casts
from pipeline.training import graph_cache, setup
from pipeline.training.captured_steps import captured_steps
from pipeline.training.distributed import Group
from pipeline.training.graph_cache import GraphCache, ShapeGrid
from pipeline.training.trainer import Trainer

CPU = torch.device("cpu")
ONE_BATCH, SEVERAL = {"micro_batch_tokens": 200}, {"micro_batch_tokens": 80}
any_number_of_batches = pytest.mark.parametrize("batches", [ONE_BATCH, SEVERAL], ids=["one", "several"])
SHORT = {"max_steps": 6, "validate_every": 3, "checkpoint_every": 2}
EXACT = {"rtol": 0, "atol": 0}


@pytest.fixture
def trainer_with(new_run, trainer_of, tmp_path, monkeypatch) -> Callable[..., Trainer]:
    """Builds the trainer of a run of some settings, whose steps a tape records.

    A folder of this name is used again. `fail` makes recordings fail; `most` graphs are kept.
    """

    def build(name: str, fail: Callable[[int], None] = lambda _: None, most: int = 96, **settings) -> Trainer:
        monkeypatch.setattr(setup, "captured_steps", taped(fail, most))
        run = tmp_path / name
        if not run.exists():
            new_run(name, **SHORT | settings)
        return trainer_of(run)

    return build


def final(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Weights and moments of a training that is done here, to its end."""
    trainer.train()
    return trainer.model.state_dict() | trainer.optimiser.tensors()


@pytest.mark.parametrize(
    ("architecture", "batches", "optimiser"),
    [
        *(("transformer", SEVERAL, "adam"), ("transformer", ONE_BATCH, "adadelta"), ("transformer", ONE_BATCH, "nag")),
        ("weighted_transformer", ONE_BATCH, "adam"),
        ("weighted_transformer", SEVERAL, "adam"),
        ("recurrent", ONE_BATCH, "adam"),
        ("convolutional", SEVERAL, "adam"),
    ],
)
def test_replayed_steps_equal_eager_ones(trainer_with, architecture, batches, optimiser):
    settings = {"architecture": architecture, "optimiser": optimiser, "clip_norm": 0.5} | batches
    settings |= {} if optimiser == "adam" else {"schedule": "plateau", "lr": 0.1}
    replayed, eager = trainer_with("replayed", **settings), trainer_with("eager", refuse, **settings)
    torch.testing.assert_close(final(replayed), final(eager), **EXACT)
    recorder = replayed.steps.captured.graphs.recorder
    assert recorder.replayed >= 6 and recorder.recorded == len(replayed.steps.captured.graphs.graphs)
    assert replayed.state.since_validation == eager.state.since_validation and replayed.state.dev == eager.state.dev


@any_number_of_batches
def test_steps_without_dropout_are_those_of_an_unpadded_training(trainer_with, batches):
    replayed, plain = (trainer_with(name, model={"dropout": 0.0}, **batches) for name in ("replayed", "plain"))
    plain.steps.captured, plain.steps.async_stats = None, False
    final(replayed), final(plain)
    for measured in ("dev", "train"):
        found, expected = (getattr(trainer.state, measured).nll_per_token for trainer in (replayed, plain))
        assert found == pytest.approx(expected, rel=1e-4)


def test_graphs_are_recorded_for_each_shape_and_frozen_weights(trainer_with):
    trainer = trainer_with("run", architecture="weighted_transformer", **ONE_BATCH)
    shapes = {part.signature for step in range(6) for part in trainer.steps.prepare(step).micro_batches}
    assert not trainer.steps.captured.graphs.graphs
    final(trainer)
    recorded = trainer.steps.captured.graphs.graphs
    assert {key[-1] for key in recorded if key[0] != "finish"} == shapes
    assert {key[1] for key in recorded} == {False, True}


def test_dropped_graphs_are_recorded_again_to_the_same_bytes(trainer_with):
    """There are so many steps that every shape comes back after another one."""
    settings = {"max_steps": 14, "validate_every": 14, "checkpoint_every": 14} | SEVERAL
    few, all_kept = trainer_with("few", most=1, **settings), trainer_with("all", **settings)
    torch.testing.assert_close(final(few), final(all_kept), **EXACT)
    assert few.steps.captured.graphs.recorder.recorded > all_kept.steps.captured.graphs.recorder.recorded
    assert len(few.steps.captured.graphs.graphs) == 1


def test_a_stopped_training_ends_in_the_same_bytes(trainer_with):
    undisturbed, first = final(trainer_with("undisturbed", **SEVERAL)), trainer_with("stopped", **SEVERAL)
    count = first.progress.count

    def counted(step: int, *rest) -> None:
        count(step, *rest)
        if step == 3:
            first.stop.signal = 15

    first.progress.count = counted
    with pytest.raises(SystemExit):
        first.train()
    second = trainer_with("stopped", **SEVERAL)
    assert 0 < second.state.step < 6
    torch.testing.assert_close(final(second), undisturbed, **EXACT)


def test_a_failed_recording_is_logged_and_training_goes_on(trainer_with, caplog):
    trainer = trainer_with("run", refuse)
    with caplog.at_level(logging.WARNING):
        final(trainer)
    (message,) = [record.message for record in caplog.records if "CUDA graphs" in record.message]
    expected = "cannot capture steps as CUDA graphs, they run eagerly: RuntimeError: operation not permitted when"
    assert message == f"{expected} stream is capturing"
    assert trainer.steps.captured.graphs.recorder.recorded == 1


def test_gradients_add_up_if_recording_had_failed_before(trainer_with):
    late, early = (trainer_with(name, refuse, **SEVERAL) for name in ("late", "early"))
    early.steps.captured.graphs.failure = "an earlier one"
    torch.testing.assert_close(final(early), final(late), **EXACT)


@pytest.mark.parametrize("faulty", [{2}, range(1, 99)], ids=["second recording", "all recordings"])
def test_graphs_are_dropped_when_memory_is_short(trainer_with, caplog, faulty):
    """A shape without memory for any graph is computed eagerly."""

    def fail(number: int) -> None:
        if number in faulty:
            raise torch.OutOfMemoryError("CUDA out of memory")

    short, enough = trainer_with("short", fail, **ONE_BATCH), trainer_with("enough", **ONE_BATCH)
    torch.testing.assert_close(final(short), final(enough), **EXACT)
    graphs = short.steps.captured.graphs
    assert graphs.recorder.released and not graphs.failure
    assert bool(graphs.refused) == ("no memory for the CUDA graph of a batch" in caplog.text) == (1 in faulty)


def test_an_error_after_lack_of_memory_leaves_eager_steps(trainer_with, caplog):
    def fail(number: int) -> None:
        if number > 1:
            raise torch.OutOfMemoryError("CUDA out of memory") if number == 2 else RuntimeError("not permitted")

    faulty, eager = trainer_with("faulty", fail, **ONE_BATCH), trainer_with("eager", refuse, **ONE_BATCH)
    torch.testing.assert_close(final(faulty), final(eager), **EXACT)
    graphs = faulty.steps.captured.graphs
    assert graphs.failure == "RuntimeError: not permitted" and graphs.recorder.recorded == 3
    assert "cannot capture steps as CUDA graphs" in caplog.text


@pytest.mark.parametrize("error", [RuntimeError("refused"), torch.OutOfMemoryError("CUDA out of memory")])
def test_eager_work_finds_no_graphs_in_memory(error):
    cache = GraphCache[str](TapeRecorder(list))
    for key in ("small", "other"):
        cache.get(key, lambda key=key: key)
        assert cache.get("large", Mock(side_effect=error)) is None and not cache.graphs and cache.recorder.released


BETWEEN = [("validation", name) for name in ("on_training_data", "on_dev", "samples")]
BETWEEN += [("checkpoints", "save_resume"), ("checkpoints", "save_weights")]


@pytest.mark.parametrize(("owner", "name"), BETWEEN)
def test_work_between_steps_gets_the_memory_of_graphs(trainer_with, owner, name):
    """Graphs keep a pool of memory, of which torch's allocator lends nothing to other work."""
    undisturbed, short = (trainer_with(folder, **ONE_BATCH) for folder in ("undisturbed", "short"))
    owned, graphs, refused = getattr(short, owner), short.steps.captured.graphs, []
    work = getattr(owned, name)

    def refuse_beside_graphs(*args):
        if graphs.graphs:
            refused.append(len(graphs.graphs))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return work(*args)

    setattr(owned, name, refuse_beside_graphs)
    torch.testing.assert_close(final(short), final(undisturbed), **EXACT)
    assert len(refused) > 1 and short.state.dev == undisturbed.state.dev


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), torch.OutOfMemoryError("CUDA out of memory")])
def test_an_error_of_work_between_steps_is_raised(trainer_with, error):
    """Without graphs, even a lack of memory; and other errors are raised at once."""
    trainer, work = trainer_with("run"), Mock(side_effect=error)
    trainer.steps.captured.graphs.graphs["some"] = None
    with pytest.raises(RuntimeError, match=str(error)):
        trainer.steps.between_steps(work)
    assert work.call_count == (2 if isinstance(error, torch.OutOfMemoryError) else 1)


@pytest.mark.parametrize("captured", [True, False])
def test_memory_is_tried_for_most_positions_of_any_step(trainer_with, captured):
    """A step of short sequences has more of them, and padding adds to that of each shape another share."""
    trainer, tried = trainer_with("run", **ONE_BATCH), []
    steps = trainer.steps
    steps.captured, backward = steps.captured if captured else None, steps.backward
    steps.backward = lambda step, batch, *rest: tried.append(batch) or backward(step, batch, *rest)
    trainer.warm_up()
    taken = [batch for step in range(2 * len(steps.batches)) for batch in steps.prepare(step).micro_batches]
    most = [max(batch.tgt_out.numel() + batch.src.numel() for batch in batches) for batches in (tried, taken)]
    assert most[0] == most[1] and len(tried) <= 3


@pytest.mark.parametrize("architecture", ["transformer", "convolutional"])
def test_padded_batches_stay_within_learned_positions(trainer_with, architecture):
    def shapes(trainer) -> list[tuple[int, ...]]:
        batches = [batch for step in range(SHORT["max_steps"]) for batch in trainer.steps.prepare(step).micro_batches]
        return [(*batch.src_shape, batch.tgt_out.shape[1]) for batch in batches]

    plain = trainer_with("plain")
    longest = max(max(sides) for _, *sides in shapes(plain))
    model = {"max_positions": longest} | ({"positions": "learned"} if architecture == "transformer" else {})
    trainer = trainer_with("run", architecture=architecture, model=model)
    trainer.steps.captured.grid = ShapeGrid([(99, longest + 2, longest + 1)])
    assert shapes(trainer) == [(99, longest, longest)] * SHORT["max_steps"]
    final(trainer)
    assert trainer.steps.captured.graphs.recorder.replayed == SHORT["max_steps"]


def test_monitored_values_are_those_of_their_step(trainer_with):
    trainer = trainer_with("run", architecture="weighted_transformer", **ONE_BATCH)
    seen, run = [trainer.model.monitors()], trainer.steps.captured.run

    def watched(*args) -> torch.Tensor:
        out = run(*args)
        seen.append(trainer.model.monitors())
        return out

    trainer.steps.captured.run = watched
    final(trainer)
    lines = read_lines_as(AnyProgress, trainer.checkpoints.run_folder / PROGRESS_FILE)
    assert [line.values for line in lines if isinstance(line, MonitorLine)] == seen
    assert seen[0] != seen[1] != seen[2]


@any_number_of_batches
def test_a_step_that_is_not_finite_is_left_out_on_the_device(trainer_with, batches):
    trainer = trainer_with("run", max_steps=4, **batches)
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


def test_weights_cast_between_replayed_steps_are_current(trainer_with):
    """Cast weights as a validation on a GPU does; a replay changes weights without changing their version."""
    trainer = trainer_with("run", **ONE_BATCH)
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


def test_rolling_back_drops_the_graphs(trainer_with):
    trainer, forgotten = trainer_with("run", max_steps=8, validate_every=2), []
    validate, forget = trainer.validate, trainer.steps.captured.forget
    trainer.validate = lambda: "diverged" if trainer.state.step == 6 else validate()
    trainer.steps.captured.forget = lambda: (forgotten.append(trainer.state.step), forget())
    final(trainer)
    assert forgotten == [6] and trainer.state.returned


def test_least_recently_used_graph_is_dropped_first():
    cache = GraphCache[str](TapeRecorder(list), most=2)
    for key in ("a", "b", "a", "c"):
        assert cache.get(key, lambda key=key: key.upper()) == key.upper()
    assert list(cache.graphs) == ["a", "c"]


class PooledGraph:
    """A graph as torch's allocator sees it, if memory of a pool such as the workspace of cuBLAS is never freed."""

    pools: dict[int, weakref.WeakSet]
    """The graphs in use of each pool."""

    def capture_begin(self, pool: int, capture_error_mode: str) -> None:
        if pool in self.pools and not self.pools[pool]:
            raise RuntimeError("it->second->use_count > 0 INTERNAL ASSERT FAILED")
        self.pools.setdefault(pool, weakref.WeakSet()).add(self)

    def capture_end(self) -> None: ...

    def replay(self) -> None: ...


def test_graphs_share_a_pool_until_all_are_dropped(monkeypatch):
    cuda = Mock(CUDAGraph=PooledGraph, graph_pool_handle=Mock(side_effect=itertools.count()))
    cuda.stream = lambda _: contextlib.nullcontext()
    monkeypatch.setattr(graph_cache, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(PooledGraph, "pools", {}, raising=False)
    cache = GraphCache[Callable](graph_cache.CudaRecorder(CPU))
    recording = itertools.count()

    def fail_third() -> None:
        if next(recording) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")

    for number, expected in enumerate(([1], [2], [0, 1], [0, 2])):
        assert cache.get(number, lambda: cache.recorder.record(fail_third)), cache.failure
        assert [len(graphs) for graphs in PooledGraph.pools.values()] == expected
    cache.clear()
    assert cache.get("next", lambda: cache.recorder.record(fail_third)), cache.failure


@pytest.mark.parametrize(("device", "wanted"), [("cpu", True), ("cuda", False)])
def test_capture_is_off_on_a_cpu_or_by_setting(new_run, device, wanted):
    spec = load_run(new_run(cuda_graphs=wanted) / "run.yaml")
    assert captured_steps(spec, None, None, None, Group(), torch.device(device)) is None

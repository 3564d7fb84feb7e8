"""Replayed steps of two processes give the bytes of their eager steps on the same padded batches.

A tape of operators stands in for a CUDA graph (tape.py), and gloo for NCCL.
"""

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from forked_ranks import fork_ranks
from safetensors.torch import load_file, save_file
from tape import refuse, taped

from pipeline.core.json_csv import read_json
from pipeline.training import setup
from pipeline.training.captured_steps import not_finite
from pipeline.training.job import train_run
from pipeline.training.ownership import StopRequest
from pipeline.training.progress import Progress
from pipeline.training.step import AsyncScalars, PreparedStep, StepRunner

pytestmark = pytest.mark.slow
NO_BATCH, UNEQUAL, SEVERAL = 200, 80, 20
"""Tokens of a micro-batch. Of the two processes, one has none in a step, one has fewer, or both have several."""
SETTINGS = {"max_steps": 6, "validate_every": 3, "checkpoint_every": 2, "clip_norm": 0.5}
SETTINGS |= {"tokens_per_update": 200, "micro_batch_tokens": UNEQUAL}


@pytest.fixture
def patch(trained_once) -> Iterator[pytest.MonkeyPatch]:
    """Changes attributes for the processes that are forked within the test; they inherit what a training imports."""
    trained_once()
    importlib.import_module("torch.fx.experimental.symbolic_shapes")  # as the first backward pass within a graph does
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setup, "captured_steps", taped())
        yield patch


def by_two(run: Path, at_start: Callable[[int], None] = lambda rank: None) -> tuple[list[int], list[int]]:
    """Train `run` by two forked processes. If both end well, check that both have the weights that one wrote.

    Args:
        run: Folder of the run.
        at_start: Called in each process with its rank.

    Returns:
        Exit code and number of replayed graphs of each process.
    """

    def train(rank: int) -> None:
        at_start(rank)
        build = setup.build_trainer
        trainers = []
        setup.build_trainer = lambda *args: trainers.append(build(*args)) or trainers[0]
        train_run(run, device="cpu", threads=1)
        graphs = trainers[0].steps.captured.graphs
        (run / f"replayed.{rank}").write_text(str(0 if graphs.failure else graphs.recorder.replayed))
        save_file(
            {name: weight.clone() for name, weight in trainers[0].model.state_dict().items()}, run / f"final.{rank}"
        )

    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in fork_ranks(2, train)]
    if codes != [0, 0]:
        return codes, []
    first, other, written = (load_file(run / name) for name in ("final.0", "final.1", "model.safetensors"))
    for name, weight in written.items():
        assert torch.equal(first[name], weight) and torch.equal(other[name], weight), name
    return codes, [int((run / f"replayed.{rank}").read_text()) for rank in range(2)]


def eager(rank: int) -> None:
    """Let this process pad batches as for graphs, and run its steps as on a GPU without graphs."""

    def without_graphs(self: StepRunner, step: int, prepared: PreparedStep, annealings: int) -> AsyncScalars:
        results = self.accumulate(step, prepared)
        self.optimiser.step(step, annealings, skip=not_finite(results[0], results[-1]))
        return AsyncScalars(results)

    StepRunner.run = without_graphs


@pytest.mark.parametrize(
    ("architecture", "tokens"),
    [
        *(("transformer", tokens) for tokens in (NO_BATCH, UNEQUAL, SEVERAL)),
        ("weighted_transformer", UNEQUAL),
    ],
)
def test_two_replaying_processes_equal_two_eager_ones(new_run, outcome, patch, architecture, tokens):
    settings = SETTINGS | {"architecture": architecture, "micro_batch_tokens": tokens}
    replayed, reference = new_run("replayed", **settings), new_run("reference", **settings)
    codes, graphs = by_two(replayed)
    assert codes == [0, 0] and min(graphs) >= SETTINGS["max_steps"]
    assert by_two(reference, eager) == ([0, 0], [0, 0])
    assert outcome(replayed) == outcome(reference)


def test_process_without_graphs_keeps_pace_with_the_other(new_run, outcome, patch):
    def refuse_in_second(rank: int) -> None:
        if rank:
            setup.captured_steps = taped(refuse)

    both, one = new_run("both", **SETTINGS), new_run("one", **SETTINGS)
    by_two(both)
    codes, graphs = by_two(one, refuse_in_second)
    assert codes == [0, 0] and graphs[0] and not graphs[1]
    assert outcome(both) == outcome(one)


def test_two_stopped_processes_end_in_the_same_bytes(new_run, outcome, patch):
    undisturbed, stopped = new_run("undisturbed", **SETTINGS), new_run("stopped", **SETTINGS)
    by_two(undisturbed)
    requests, begin, count = [], StopRequest.__enter__, Progress.count
    patch.setattr(StopRequest, "__enter__", lambda self: requests.append(self) or begin(self))

    def stop_second(rank: int) -> None:
        def counted(self: Progress, step: int, *rest) -> None:
            count(self, step, *rest)
            if rank and step == 2:
                requests[0].signal = 15

        Progress.count = counted

    assert by_two(stopped, stop_second)[0] == [75, 75]
    assert not (stopped / "done.json").exists()
    assert by_two(stopped)[0] == [0, 0]
    assert outcome(stopped) == outcome(undisturbed)


def test_gradients_not_finite_in_one_process_are_skipped_by_both(new_run, outcome, patch):
    def fault(rank: int) -> None:
        replay, divisor, steps = StepRunner.run, StepRunner.divisor, []
        StepRunner.run = lambda self, step, *args: steps.append(step) or replay(self, step, *args)
        if rank:
            StepRunner.divisor = lambda self, prepared: 3e-39 if steps[-1] == 2 else divisor(self, prepared)

    replayed, reference = new_run("replayed", **SETTINGS), new_run("reference", **SETTINGS)
    assert by_two(replayed, fault)[0] == by_two(reference, lambda rank: (eager(rank), fault(rank)))[0] == [0, 0]
    assert read_json(replayed / "done.json")["skipped_updates"] == 1
    assert outcome(replayed) == outcome(reference)

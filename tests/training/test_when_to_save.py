"""Steps after which a training saves, and signals that stop it."""

import copy
import math
import os
import random
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace as Some

import numpy as np
import pytest
from run_folders import json_lines

from pipeline.training import guards, trainer
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.ownership import StopRequest
from pipeline.training.state import TrainingState
from pipeline.training.trainer import Trainer


@pytest.mark.parametrize(
    ("step", "since", "took", "due"),
    [
        (10, 1, 0.0, True),  # beside every kept one
        (7, 61, 0.0, True),  # after a minute
        (7, 59, 0.0, False),
        (7, 100, 20.1, False),  # writing took more than a fifth of the time since
        (7, 100, 19.9, True),
        (10, 100, 20.1, False),
    ],
)
def test_save_is_due_at_checkpoints_or_after_a_while(monkeypatch, step, since, took, due):
    monkeypatch.setattr(trainer, "SAVING_SHARE", 0.2)
    monkeypatch.setattr(trainer.time, "monotonic", lambda: 500.0 + since)
    spec = Some(training=Some(checkpoint_every=10))
    training = Some(state=Some(step=step), spec=spec, save_every_s=60, saved_at=500.0, saving_took_s=took)
    assert Trainer.saving_is_due(training) is due


def test_validations_come_every_so_many_updates_and_at_the_end(train, monkeypatch):
    asked = []
    monkeypatch.setattr(Checkpoints, "check_space", lambda self, model, checkpoints: asked.append(checkpoints))
    run = train(max_steps=11, validate_every=4, checkpoint_every=6)
    lines = json_lines(run / "progress.jsonl")
    assert [line["step"] for line in lines if line["event"] == "validation"] == [4, 8, 11]
    kept = {path.name for path in (run / "checkpoints").glob("step-*.safetensors") if "resume" not in path.name}
    assert kept == {"step-6.safetensors", "step-11.safetensors"} and asked == [len(kept)]


def process_of_two(saves_at: int, values: Callable[[int], list[float]], state: TrainingState) -> Trainer:
    """Return a process that reads the results of a step one step later, or at once when it saves.

    Args:
        saves_at: Step after which it saves.
        values: Results of a step, over both processes.
        state: State that it begins with.
    """
    process = object.__new__(Trainer)
    limits = Some(max_steps=20, validate_every=100, checkpoint_every=100)
    process.spec, process.state = Some(name="x", training=limits), state
    process.group, process.stop = Some(size=2, is_first=True), Some(signal=None, exit_code=75)
    process.pending_step, process.stop_step, process.early_fault = None, None, guards.too_many_skipped(state)
    process.optimiser, process.model = Some(rate=0.1), Some(monitors=dict)
    process.progress = Some(count=lambda *_: None, monitor=lambda *_: None)
    process.cost, process.checkpoints = Some(count=lambda *_: None), Some(finish=lambda: None)
    prepared = Some(tokens=1, micro_batches=[])
    process.prefetcher = Some(steps=lambda first, last: ((step, prepared) for step in range(first, last)), waited_s=0)
    process.save = lambda: None
    process.saving_is_due = lambda: process.state.step == saves_at
    process.steps = Some(run=lambda step, prepared, annealings: Some(values=values(step)), async_stats=True)
    process.steps.batches = Some(sequences_of=lambda step: np.array([step]))
    return process


def test_processes_stop_after_the_same_step_if_one_saves_earlier(monkeypatch):
    monkeypatch.setattr(Trainer, "ended", False)

    def last_step(saves_at: int, stopped_in: int) -> int:
        def values(step: int) -> list[float]:
            return [1.0, 1.0, 1.0, float(step >= stopped_in), 1.0]

        process = process_of_two(saves_at, values, TrainingState())
        with pytest.raises(SystemExit):
            process._loop()
        return process.state.step - 1

    assert {last_step(saves_at, stopped_in=5) for saves_at in (5, 6, 7, 8, 99)} == {6}


@pytest.mark.parametrize("resumes", [False, True])
def test_processes_roll_back_together_if_one_saves_earlier(monkeypatch, resumes):
    """Each saves when that is due and when it has rolled back; one may be killed when it has saved, and resume."""
    monkeypatch.setattr(Trainer, "ended", False)
    first, rows = random.randint(2, 5), random.randint(1, 5)
    monkeypatch.setattr(guards, "MOST_SKIPPED_IN_A_ROW", rows)
    last = first + rows + 1

    def values(step: int) -> list[float]:
        return [math.nan if step in range(first, first + rows) else 1.0, 1.0, 1.0, 0.0, 1.0]

    def steps_of_roll_backs(saves_at: int, state: TrainingState) -> tuple[list[int], list[TrainingState]]:
        process, steps, saved = process_of_two(saves_at, values, state), [], []
        process.save = lambda: saved.append(copy.deepcopy(state))

        def roll_back(fault: str) -> None:
            steps.append(state.step)
            state.skipped_in_a_row = 0

        process.roll_back = roll_back
        process._loop()
        return steps, saved

    for saves_at in range(1, last):
        steps, saved = steps_of_roll_backs(saves_at, TrainingState())
        assert [state.step for state in saved] == [saves_at, last]
        if resumes:
            steps, _ = steps_of_roll_backs(99, saved[0])
        assert steps == [last], (saves_at, first, rows)


@pytest.fixture
def hangup():
    """Set what SIGHUP does, whatever this run of tests was started by."""
    before = signal.getsignal(signal.SIGHUP)
    yield lambda action: signal.signal(signal.SIGHUP, action)
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 75), (signal.SIGUSR2, 75), (signal.SIGHUP, 75), (signal.SIGINT, 130)],
    ids=["TERM", "USR2", "HUP", "INT"],
)
def test_signal_is_recorded_with_its_conventional_exit_code(hangup, number, code):
    hangup(lambda *_: pytest.fail("has no handler"))
    before = signal.getsignal(number)
    with StopRequest() as stop:
        assert stop.signal is None
        os.kill(os.getpid(), number)
        assert (stop.signal, stop.exit_code) == (number, code)
    assert signal.getsignal(number) is before


def test_a_training_under_nohup_survives_its_terminal(hangup):
    hangup(signal.SIG_IGN)
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.signal is None


def test_only_a_second_sigint_interrupts_immediately():
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_signal_handlers_are_not_set_in_a_thread():
    with ThreadPoolExecutor(1) as thread:
        thread.submit(StopRequest().__enter__).result()

"""After any interruption of a training, the same command resumes it and ends in the same bytes."""

import builtins
import errno
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest.mock import Mock

import pytest
from run_folders import json_lines

from pipeline.core import retries
from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.training import checkpoint, job, trainer
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.checkpoint_files import weight_files
from pipeline.training.job import train_run
from pipeline.training.tensor_file import write_tensor_file


def in_child(work: Callable[[], None], killed_after_s: float | None = None) -> bool:
    """Run `work` in a forked process, because starting torch takes seconds; returns whether it was killed."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    if killed_after_s is not None:
        time.sleep(killed_after_s)
        os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def train_with_kills(run: Path, seconds: Iterable[float]) -> None:
    """Train a run that is killed so many seconds after each start, and at last train it to its end."""
    for wait in seconds:
        in_child(lambda: train_run(run, threads=1, save_every_s=0.0), wait)
    train_run(run, threads=1)


NO_BETTER = {"schedule": "constant", "lr": 1e-30, "warmup_steps": None, "validate_every": 2, "checkpoint_every": 4}
LOWERED = {"schedule": "plateau", "lr": 1e-9, "validate_every": 1, "warmup_steps": None}
KILLED = {
    "transformer": {"architecture": "transformer"},
    "weighted_transformer": {"architecture": "weighted_transformer", "micro_batch_tokens": 80},
    "recurrent": {"architecture": "recurrent"},
    "convolutional": {"architecture": "convolutional"},
    "adadelta with a lowered rate": {"optimiser": "adadelta", **LOWERED},
    "nag with a lowered rate": {"optimiser": "nag", **LOWERED},
    "patience": {"max_steps": 90, "patience": 3, **NO_BETTER},
}


@pytest.mark.parametrize("name", KILLED)
def test_killed_at_random_moments(new_run, trained_once, outcome, name):
    undisturbed, disturbed = trained_once(**KILLED[name]), new_run("disturbed", **KILLED[name])
    train_with_kills(disturbed, [random.uniform(0.02, 0.2), random.uniform(0.02, 0.2), random.uniform(0.1, 0.4)])
    assert outcome(disturbed) == outcome(undisturbed)
    if name == "patience":
        done = read_json(undisturbed / "done.json")
        assert (done["steps"], done["best_dev"]["step"]) == (2 + 3 * 2, 2)
        assert [step for step, _ in weight_files(undisturbed)] == [4, 8]


def test_killed_in_the_midst_of_writing(undisturbed, disturbed, outcome):
    def die_while_writing(call: str, count: int) -> None:
        """Train until os.`call` is called for the `count`-th time; die before or after that."""
        real, after = getattr(os, call), random.random() < 0.5

        def counted(*args):
            nonlocal count
            count -= 1
            try:
                if count or after:
                    real(*args)
            finally:
                if not count:
                    os.kill(os.getpid(), signal.SIGKILL)

        setattr(os, call, counted)
        train_run(disturbed, threads=1, save_every_s=0.0)

    calls = [(random.choice(["fsync", "replace", "unlink"]), count) for count in range(1, 9)]
    killed = [in_child(lambda call=call: die_while_writing(*call)) for call in calls]
    assert sum(killed) >= 3
    train_run(disturbed, threads=1)
    assert outcome(disturbed) == outcome(undisturbed)


@pytest.fixture
def stopped(disturbed, train_signalled):
    """A run stopped by a signal in its fifth update."""
    train_signalled(disturbed, step=4, save_every_s=0.0)
    return disturbed


def test_stopped_by_a_signal_between_two_updates(new_run, train_signalled, trained_once, outcome):
    number, exit_code = random.choice([(signal.SIGTERM, 75), (signal.SIGUSR2, 75), (signal.SIGINT, 130)])
    undisturbed, disturbed = trained_once(architecture="transformer"), new_run("disturbed")
    at = random.randrange(1, 11)
    assert train_signalled(disturbed, at, number) == exit_code
    assert (disturbed / "checkpoints" / f"step-{at + 1}.resume.safetensors").exists()
    train_run(disturbed, threads=1)
    assert outcome(disturbed) == outcome(undisturbed)
    assert [start["steps"] for start in read_json(disturbed / "cost.json")["starts"]] == [at + 1, 11 - at]


def test_a_training_ends_where_its_rate_does(train):
    settings = NO_BETTER | {"schedule": "plateau", "min_lr": 2e-31, "checkpoint_every": 50}
    run = train(max_steps=90, **settings)
    assert read_json(run / "done.json")["steps"] == 2 + 3 * 2
    assert [step for step, _ in weight_files(run)] == [8]


def test_one_that_still_learns_is_not_stopped(train):
    """Steps so small that each lowers the loss, whatever the corpus."""
    run = train(max_steps=12, patience=1, validate_every=2, schedule="constant", lr=3e-4, warmup_steps=None)
    assert read_json(run / "done.json")["steps"] == 12


def test_a_slow_disk_takes_its_share_of_the_time_and_no_more(train, monkeypatch):
    saved = []

    def slow(self, model, optimiser, state, machine, then):
        saved.append(state.step)
        time.sleep(0.2)

    monkeypatch.setattr(trainer, "SAVING_SHARE", 0.5)
    monkeypatch.setattr(Checkpoints, "save_resume", slow)
    run = train(max_steps=30, checkpoint_every=1, validate_every=30)
    spent = read_json(run / "cost.json")["total"]["seconds"]
    first, *others, last = saved  # the last is for longer trainings, however slow the disk
    assert (first, last) == (1, 30) and len(others) <= (spent - 0.2) / (0.2 + 0.4)
    assert len(weight_files(run)) == 20


def fail_to_open(patched, name: str, number: int, times: int) -> None:
    """The first `times` openings of a file called `name` to read it fail with errno `number`."""
    real, left = builtins.open, [times]

    def failing(file, mode="r", *args, **kwargs):
        if str(file).endswith(name) and mode == "rb" and left[0]:
            left[0] -= 1
            raise OSError(number, os.strerror(number), str(file))
        return real(file, mode, *args, **kwargs)

    patched.setattr(builtins, "open", failing)
    patched.setattr("io.open", failing)
    patched.setattr(retries, "READ_PAUSES_S", (0.0, 0.01))


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_checkpoint_with_a_transient_read_error_is_retried(undisturbed, stopped, outcome, caplog, number):
    caplog.set_level("INFO")
    with pytest.MonkeyPatch.context() as patched:
        fail_to_open(patched, "step-5.resume.safetensors", number, times=1)
        train_run(stopped, threads=1)
    assert "resumed after step 5" in caplog.text and "damaged" not in caplog.text
    assert outcome(stopped) == outcome(undisturbed)


def test_kept_weights_that_could_not_be_written_come_first(undisturbed, disturbed, outcome):
    """A disk that is full for a moment: the resume file of the same step must not follow."""
    faults, queued, save_resume = ["step-4.safetensors"], threading.Event(), Checkpoints.save_resume

    def queue(self, model, optimiser, state, *more) -> None:
        save_resume(self, model, optimiser, state, *more)
        if state.step == 4:
            queued.set()

    def fail_once(path: Path, tensors, metadata) -> None:
        if path.name in faults:
            faults.remove(path.name)
            assert queued.wait(60)
            raise UserError(f"can't write {path}: No space left on device; free some space")
        write_tensor_file(path, tensors, metadata)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checkpoint, "write_tensor_file", fail_once)
        patched.setattr(Checkpoints, "save_resume", queue)
        with pytest.raises(UserError, match=r"step-4\.safetensors: No space left"):
            train_run(disturbed, threads=1)
    train_run(disturbed, threads=1)
    assert outcome(disturbed) == outcome(undisturbed)
    assert [step for step, _ in weight_files(disturbed)] == [4, 8, 12]


def test_unreadable_checkpoint_is_one_error_and_nothing_is_lost(undisturbed, stopped, outcome):
    before = {path: path.read_bytes() for path in (stopped / "checkpoints").iterdir()}
    with pytest.MonkeyPatch.context() as patched:
        fail_to_open(patched, "step-5.resume.safetensors", errno.EIO, times=1000)
        with pytest.raises(UserError, match=r"step-5\.resume\.safetensors: can't be read: Input/output error; nothing"):
            train_run(stopped, threads=1)
    assert {path: path.read_bytes() for path in (stopped / "checkpoints").iterdir()} == before
    train_run(stopped, threads=1)
    assert outcome(stopped) == outcome(undisturbed)


def test_the_files_to_look_at_read_as_those_of_one_run(new_run, train_signalled):
    """The training is killed after step 7 and resumes from step 4 at most, so it validates twice after step 6."""
    run = new_run()
    assert in_child(lambda: train_signalled(run, 6, signal.SIGKILL))
    train_run(run, threads=1)
    lines = json_lines(run / "progress.jsonl")
    assert [line["step"] for line in lines if line["event"] == "validation"] == [6, 12]
    steps = [line["step"] for line in lines]
    assert steps == sorted(steps)
    assert [line["step"] for line in json_lines(run / "samples.jsonl")] == [6, 6, 6, 12, 12, 12]


def test_kill_before_the_final_weights_repeats_no_validation(new_run, monkeypatch):
    """Its last validation, after step 7, follows the last resume file."""
    run = new_run(max_steps=7)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(job, "finish", Mock(side_effect=KeyboardInterrupt))
        train_run(run, threads=1)
    train_run(run, threads=1)
    lines = json_lines(run / "progress.jsonl")
    assert [line["step"] for line in lines if line["event"] == "validation"] == [6, 7]
    assert [line["step"] for line in json_lines(run / "samples.jsonl")] == [6, 6, 6, 7, 7, 7]

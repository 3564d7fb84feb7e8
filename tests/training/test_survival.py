"""After any interruption of a training, the same command resumes it and ends in the same bytes."""

import builtins
import errno
import json
import os
import random
import signal
import time
from collections.abc import Callable

import pytest

from pipeline.core import disk as retries
from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.training import trainer
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.job import train_run
from pipeline.training.specification import weight_files
from pipeline.training.step import StepRunner
from pipeline.training.trainer import Trainer


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


@pytest.mark.parametrize("undisturbed", ["transformer", "weighted_transformer"], indirect=True)
def test_killed_at_random_moments(undisturbed, disturbed, outcome):
    for _ in range(6):
        in_child(lambda: train_run(disturbed, threads=1, save_every_s=0.0), killed_after_s=random.uniform(0.02, 0.2))
    train_run(disturbed, threads=1)
    assert outcome(disturbed) == outcome(undisturbed)


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

    calls = [(random.choice(["fsync", "replace", "unlink"]), count) for count in (1, 2, 3, 4, 5, 6, 7, 8)]
    killed = [in_child(lambda call=call: die_while_writing(*call)) for call in calls]
    assert sum(killed) >= 3
    train_run(disturbed, threads=1)
    assert outcome(disturbed) == outcome(undisturbed)


def test_stopped_by_a_signal_between_two_updates(new_run, trained_once, outcome, monkeypatch):
    number, exit_code = random.choice([(signal.SIGTERM, 75), (signal.SIGUSR2, 75), (signal.SIGINT, 130)])
    undisturbed, disturbed = trained_once(architecture="transformer"), new_run("disturbed")
    at = random.randrange(1, 11)
    accumulate = StepRunner.accumulate

    def signalled(self, step, *args):
        if step == at:
            os.kill(os.getpid(), number)
        return accumulate(self, step, *args)

    with monkeypatch.context() as patched, pytest.raises(SystemExit) as stopped:
        patched.setattr(StepRunner, "accumulate", signalled)
        train_run(disturbed, threads=1)
    assert stopped.value.code == exit_code
    assert (disturbed / "checkpoints" / f"step-{at + 1}.resume.safetensors").exists()
    train_run(disturbed, threads=1)
    assert outcome(disturbed) == outcome(undisturbed)
    assert [start["steps"] for start in read_json(disturbed / "cost.json")["starts"]] == [at + 1, 11 - at]


@pytest.mark.parametrize("architecture", ["recurrent", "convolutional"])
def test_models_of_other_kinds_survive_a_kill_too(new_run, outcome, architecture):
    undisturbed, disturbed = (new_run(name, architecture=architecture) for name in ("undisturbed", "disturbed"))
    train_run(undisturbed, threads=1)
    in_child(lambda: train_run(disturbed, threads=1, save_every_s=0.0), killed_after_s=random.uniform(0.1, 0.4))
    train_run(disturbed, threads=1)
    assert outcome(disturbed) == outcome(undisturbed)


@pytest.mark.parametrize("optimiser", ["adadelta", "nag"])
def test_a_lowered_rate_and_any_moments_survive_a_kill(new_run, outcome, optimiser):
    settings = {"optimiser": optimiser, "schedule": "plateau", "lr": 1e-9, "validate_every": 1, "warmup_steps": None}
    undisturbed, disturbed = (new_run(name, **settings) for name in ("undisturbed", "disturbed"))
    train_run(undisturbed, threads=1)
    for _ in range(2):
        in_child(lambda: train_run(disturbed, threads=1, save_every_s=0.0), killed_after_s=random.uniform(0.02, 0.2))
    train_run(disturbed, threads=1)
    assert outcome(disturbed) == outcome(undisturbed)


def test_a_training_ends_where_its_rate_does(new_run, outcome):
    """A rate of 1e-30 moves nothing, so that no validation is better than the first and the rate falls at each."""
    settings = {"schedule": "plateau", "lr": 1e-30, "min_lr": 2e-31, "warmup_steps": None}
    run = new_run(max_steps=90, validate_every=2, checkpoint_every=50, **settings)
    train_run(run, threads=1)
    assert read_json(run / "done.json")["steps"] == 2 + 3 * 2
    assert [step for step, _ in weight_files(run)] == [8]


# A rate of 1e-30 moves nothing, so that the first validation stays the best.
NO_BETTER = {"schedule": "constant", "lr": 1e-30, "warmup_steps": None, "validate_every": 2, "checkpoint_every": 4}


def test_one_that_still_learns_is_not_stopped(new_run):
    """Steps so small that each lowers the loss, whatever the corpus."""
    run = new_run(max_steps=12, patience=1, validate_every=2, schedule="constant", lr=3e-4, warmup_steps=None)
    train_run(run, threads=1)
    assert read_json(run / "done.json")["steps"] == 12


def test_training_ends_when_patience_runs_out_despite_kills(new_run, outcome):
    undisturbed, disturbed = (new_run(name, max_steps=90, patience=3, **NO_BETTER) for name in ("one", "other"))
    train_run(undisturbed, threads=1)
    done = read_json(undisturbed / "done.json")
    assert (done["steps"], done["best_dev"]["step"]) == (2 + 3 * 2, 2)
    assert [step for step, _ in weight_files(undisturbed)] == [4, 8]
    for seconds in (0.05, 0.1, 0.15):
        in_child(lambda: train_run(disturbed, threads=1, save_every_s=0.0), killed_after_s=seconds)
    train_run(disturbed, threads=1)
    assert outcome(disturbed) == outcome(undisturbed)


def test_saving_all_the_time_changes_nothing(undisturbed, disturbed, outcome):
    train_run(disturbed, threads=1, save_every_s=0.0)
    assert outcome(disturbed) == outcome(undisturbed)


def test_a_slow_disk_takes_its_share_of_the_time_and_no_more(new_run, monkeypatch):
    monkeypatch.setattr(trainer, "SAVING_SHARE", 0.5)
    saved = []

    def slow(self, model, optimiser, state, machine, then):
        saved.append(state.step)
        time.sleep(0.2)

    monkeypatch.setattr(Checkpoints, "save_resume", slow)
    run = new_run(max_steps=30, checkpoint_every=1, validate_every=30)
    train_run(run, threads=1)
    spent = read_json(run / "cost.json")["total"]["seconds"]
    first, *others, last = saved  # the last is for longer trainings, however slow the disk
    assert (first, last) == (1, 30) and len(others) <= (spent - 0.2) / (0.2 + 0.4)
    assert len(weight_files(run)) == 20


def test_damaged_newest_checkpoint_costs_only_its_own_steps(undisturbed, disturbed, outcome, caplog):
    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(Trainer, "validate", lambda self: self.stop._note(signal.SIGTERM, None))
        train_run(disturbed, threads=1, save_every_s=0.0)
    newest = disturbed / "checkpoints" / "step-6.resume.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    train_run(disturbed, threads=1)
    assert "damaged" in caplog.text
    assert outcome(disturbed) == outcome(undisturbed)


@pytest.fixture
def stopped(disturbed):
    """A run stopped by a signal in its fifth update."""
    accumulate = StepRunner.accumulate

    def signalled(self, step, *args):
        if step == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return accumulate(self, step, *args)

    with pytest.MonkeyPatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(StepRunner, "accumulate", signalled)
        train_run(disturbed, threads=1, save_every_s=0.0)
    return disturbed


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


def test_unreadable_checkpoint_is_one_error_and_nothing_is_lost(undisturbed, stopped, outcome):
    before = all_checkpoints(stopped)
    with pytest.MonkeyPatch.context() as patched:
        fail_to_open(patched, "step-5.resume.safetensors", errno.EIO, times=1000)
        with pytest.raises(UserError, match=r"step-5\.resume\.safetensors: can't be read: Input/output error; nothing"):
            train_run(stopped, threads=1)
    assert all_checkpoints(stopped) == before
    train_run(stopped, threads=1)
    assert outcome(stopped) == outcome(undisturbed)


def all_checkpoints(run) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "checkpoints").iterdir()}


def test_the_files_to_look_at_read_as_those_of_one_run(new_run):
    run = new_run()
    assert in_child(lambda: train_run(run, threads=1, save_every_s=0.0), killed_after_s=0.1)
    train_run(run, threads=1)
    lines = [json.loads(line) for line in (run / "progress.jsonl").read_text().split("\n")[:-1]]
    assert [line["step"] for line in lines if line["event"] == "validation"] == [6, 12]
    steps = [line["step"] for line in lines]
    assert steps == sorted(steps)
    samples = [json.loads(line)["step"] for line in (run / "samples.jsonl").read_text().split("\n")[:-1]]
    assert samples == [6, 6, 6, 12, 12, 12]

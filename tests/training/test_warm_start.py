"""A longer training continues from the end of the shorter one; runs with other settings stay beside it."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from made_records import start_cost, training_cost
from run_folders import change_settings, json_lines

from pipeline.core.errors import UserError
from pipeline.core.json_csv import read_json
from pipeline.core.layout import EVENTS
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.job import train_run
from pipeline.training.specification import MachineOptions, run_key
from pipeline.training.step import StepRunner
from pipeline.training.warm_start import continue_from
from reprise.__main__ import main
from reprise.cli.continue_run import with_threads_of

PLATEAU = {"schedule": "plateau", "lr": 0.01, "min_lr": 1e-9}


@pytest.fixture
def updates(monkeypatch):
    """Return the steps that are trained, as they come."""
    counted, whole = [], StepRunner.accumulate
    monkeypatch.setattr(
        StepRunner, "accumulate", lambda self, step, *rest: counted.append(step) or whole(self, step, *rest)
    )
    return counted


@pytest.fixture
def train_longer(train, updates) -> Callable[..., tuple[Path, list[int]]]:
    """Train a second run of the seed; return its folder and the steps that were trained for it."""

    def trained(**settings) -> tuple[Path, list[int]]:
        updates.clear()
        return train("seed1-00000002", **settings), [*updates]

    return trained


def validations(run: Path) -> list[dict]:
    return [line for line in json_lines(run / "progress.jsonl") if line["event"] == "validation"]


FIRST = "seed1-00000001"
"""Name of the run that is there before."""


# 10 is no multiple of 6 or 4: what is measured and kept at the end would not be, had it gone on
@pytest.mark.parametrize(("first", "schedule"), [(8, PLATEAU), (10, {}), (10, PLATEAU), (12, {})])
def test_extended_training_matches_one_long_from_the_start(
    finished, trained_once, outcome, train_longer, first, schedule
):
    at_once = trained_once(max_steps=16, **schedule)
    shorter = finished(FIRST, max_steps=first, **schedule)
    (shorter / EVENTS).mkdir()
    (shorter / EVENTS / "of the shorter").touch()
    before = outcome(shorter)
    longer, steps = train_longer(max_steps=16, **schedule)
    assert steps == list(range(first, 16))
    assert outcome(longer) == outcome(at_once) and outcome(shorter) == before
    assert validations(longer) == validations(at_once)
    assert (longer / "samples.jsonl").read_bytes() == (at_once / "samples.jsonl").read_bytes()
    assert [path.name for path in (longer / EVENTS).iterdir()] == ["of the shorter"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_no_copy_of_a_shorter_training_marks_a_begun_run(call, new_run, finished, monkeypatch):
    shorter, longer = finished(FIRST, max_steps=10), new_run("seed1-00000002", max_steps=12)
    (shorter / EVENTS).mkdir()
    (shorter / EVENTS / "of the shorter").write_bytes(b"events")
    checkpoints, real = Checkpoints(longer, run_key(longer), keep=2), getattr(os, call)
    for fails_at in range(5):
        left = iter(range(fails_at))

        def refuse(*arguments, left=left):
            if next(left, None) is None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*arguments)

        with monkeypatch.context() as patch, pytest.raises(UserError, match=f"^.*{os.strerror(errno.ENOSPC)}.*$"):
            patch.setattr(os, call, refuse)
            continue_from(checkpoints, shorter)
        assert not checkpoints.has_begun
    assert continue_from(checkpoints, shorter) == 10 and checkpoints.has_begun
    assert (longer / EVENTS / "of the shorter").read_bytes() == b"events"


ENDS_EARLY = {"validate_every": 1, "lr_factor": 8.0, "max_steps": 20}
COSINE = {"schedule": "cosine", "lr": 0.1, "lr_factor": 1.0, "warmup_steps": 2}  # which depends on the length


@pytest.mark.parametrize(("more", "schedule"), [(None, {}), (4, {}), (None, COSINE)])
def test_training_extended_by_patience_matches_a_patient_one(
    finished, trained_once, outcome, train_longer, more, schedule
):
    settings = ENDS_EARLY | schedule
    at_once = trained_once(**settings, patience=more)
    ended = read_json(finished(FIRST, **settings, patience=1) / "done.json")["steps"]
    patient, steps = train_longer(**settings, patience=more)
    assert 2 <= ended < 20 and steps[0] == ended
    assert outcome(patient) == outcome(at_once)


@pytest.mark.parametrize("keep", [1, 2])
def test_a_training_that_ended_between_two_checkpoints_goes_on(finished, trained_once, outcome, train_longer, keep):
    """Its last weights, which it kept, took the place of the oldest."""
    settings = {"checkpoint_every": 4, "keep_checkpoints": keep}
    at_once = trained_once(**settings, max_steps=14)
    finished(FIRST, **settings, max_steps=10)
    longer, steps = train_longer(**settings, max_steps=14)
    assert steps[0] == 10 and outcome(longer) == outcome(at_once)


def test_warm_start_uses_the_run_with_most_steps(finished, train_longer):
    finished(FIRST, **ENDS_EARLY, patience=1)
    finished("seed1-00000003", **ENDS_EARLY | {"max_steps": 18}, patience=None)
    _, steps = train_longer(**ENDS_EARLY, patience=None)
    assert steps[0] == 18


def test_warm_start_ignores_a_run_with_more_patience(finished, train_longer):
    finished(FIRST, **ENDS_EARLY, patience=None)
    _, steps = train_longer(**ENDS_EARLY, patience=1)
    assert steps[0] == 0 and len(steps) < 20


@pytest.mark.parametrize("fault", ["missing", "damaged"])
def test_warm_start_ignores_a_run_with_lost_weights(fault, finished, train_longer, outcome, caplog):
    shorter = finished(FIRST, max_steps=12)
    weights = shorter / "checkpoints/step-8.safetensors"
    weights.unlink() if fault == "missing" else weights.write_bytes(b"damaged")
    before = outcome(shorter)
    longer, steps = train_longer(max_steps=13)
    assert steps == list(range(13)) and outcome(shorter) == before
    assert len(read_json(longer / "cost.json")["starts"]) == 1 and "step-8" in caplog.text


def test_longer_training_continues_from_an_unfinished_one(train, trained_once, outcome, train_longer, monkeypatch):
    at_once = trained_once(max_steps=16)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr("pipeline.training.trainer.Trainer.end", lambda self: 1 / 0)
        train(FIRST, max_steps=12)
    longer, steps = train_longer(max_steps=16)
    assert steps[0] == 12 and outcome(longer) == outcome(at_once)


@pytest.mark.parametrize("other", [{"seed": 2}, {"model": {"d_ff": 16}}, {"tokens_per_update": 160}])
def test_a_run_that_differs_otherwise_is_named_and_left_alone(train, train_longer, caplog, other):
    caplog.set_level("INFO")
    train(FIRST, max_steps=1, **other)
    _, steps = train_longer(max_steps=2)
    assert steps == [0, 1]
    (line,) = (line for line in caplog.text.splitlines() if "another run of this system and seed is" in line)
    key = next(iter(other.get("model", other)))
    assert FIRST in line and f"{key} is" in line and "max_steps is 1 (here 2)" in line


def test_a_run_with_unreadable_settings_stops_no_other(new_run, train_longer, caplog):
    """Another version may have written it."""
    caplog.set_level("INFO")
    change_settings(new_run(FIRST), training={"of_another_version": 1})
    _, steps = train_longer(max_steps=2)
    assert steps == [0, 1]
    assert "training.of_another_version: unknown key" in caplog.text


def test_warm_start_is_off_if_the_schedule_depends_on_length(finished, train_longer):
    finished(FIRST, architecture="weighted_transformer", max_steps=8)
    _, steps = train_longer(architecture="weighted_transformer", max_steps=9)
    assert steps == list(range(9))


@pytest.fixture
def stored(new_run, copy_corpus, tmp_path, threads_restored):
    """A run trained with two threads, in a store, whose folders are named after their content."""
    (tmp_path / "copy-0123abcd").symlink_to(copy_corpus.parent)
    run = new_run(FIRST, architecture="weighted_transformer", max_steps=4)
    change_settings(run, corpus="../copy-0123abcd/encoded")
    train_run(run, threads=2)
    return run


def test_continue_extends_a_length_dependent_schedule(stored, updates):
    updates.clear()
    assert main(["continue", str(stored), "--steps", "6"]) == 0
    (longer,) = (folder for folder in stored.parent.glob("seed1-*") if folder != stored)
    assert updates == [4, 5]
    done = read_json(longer / "done.json")
    assert done["steps"] == 6 and done["continued_from"] == stored.name
    assert read_json(longer / "cost.json")["starts"][-1]["threads"] == 2, "as many as of the run"
    assert read_json(stored / "done.json")["continued_from"] is None
    assert re.fullmatch(r"seed1-[0-9a-f]{8}", longer.name)


@pytest.mark.parametrize(
    ("last", "threads"), [({}, 1), ({"threads": 10**6}, None), ({"device": "NVIDIA A100", "gpu_hours": 0.1}, None)]
)
def test_continue_takes_the_threads_of_the_last_start(tmp_path, last, threads):
    """Except those of a GPU's host, or of a machine with more cores."""
    assert with_threads_of(tmp_path, MachineOptions()).threads is None
    first = start_cost(threads=2) if last else start_cost(threads=10**6)
    training_cost(first, start_cost(**last)).write(tmp_path / "cost.json")
    assert with_threads_of(tmp_path, MachineOptions()).threads == threads
    assert with_threads_of(tmp_path, MachineOptions(threads=3)).threads == 3


def test_continue_refuses_fewer_steps_and_missing_checkpoints(stored, capsys):
    assert main(["continue", str(stored), "--steps", "4"]) == 1
    assert "has 4 steps; ask for more" in capsys.readouterr().err
    for path in (stored / "checkpoints").glob("*.resume.safetensors"):
        path.unlink()
    run = stored.rename(stored.with_name(f"a {stored.name}"))
    assert main(["continue", str(run), "--steps", "12", "--prepare"]) == 1
    assert re.search("has no checkpoint to resume from .* --run '.*/a seed1-[^ ]*'`", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--threads", "0"], "--threads must be at least 1"), (["--device", "cuda"], "--device cuda: torch")],
)
def test_continue_leaves_nothing_behind_where_it_can_not_train(stored, capsys, monkeypatch, words, said):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    before = set(stored.parent.rglob("*"))
    assert main(["continue", str(stored), "--steps", "12", *words]) == 1
    assert said in capsys.readouterr().err and set(stored.parent.rglob("*")) == before


def test_continue_refuses_a_run_that_stopped_early(train, capsys):
    run = train("seed1-00000002", max_steps=40, validate_every=2, patience=1, lr_factor=50.0)
    ended = read_json(run / "done.json")["steps"]
    assert ended < 40
    assert main(["continue", str(run), "--steps", "60"]) == 1
    assert f"stopped early after {ended} of 40 steps" in capsys.readouterr().err


def test_a_work_folder_that_moved_is_found_finished(stored, tmp_path, updates):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("copy-0123abcd", stored.name):
        (tmp_path / name).rename(elsewhere / name)
    updates.clear()
    train_run(elsewhere / stored.name, threads=1)
    assert updates == []


def test_continue_refuses_an_absurd_length_and_creates_no_run(new_run, capsys):
    shorter = new_run(FIRST, max_steps=2)
    assert main(["continue", str(shorter), "--steps", "9" * 20, "--prepare"]) == 1
    assert "too large; must be below" in capsys.readouterr().err
    assert [*shorter.parent.glob("seed*")] == [shorter]

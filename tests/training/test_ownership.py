"""Who works on a run: of two that claim it the later one, once the former has let go; signals stop the former."""

import errno
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import Mock

import pytest
from time_limit import until

from pipeline.core.errors import UserError
from pipeline.core.records.jobs import StartLine, record_event
from pipeline.training import ownership
from pipeline.training.ownership import Ownership, TakenOver
from pipeline.workflow.runs import is_locked


@pytest.fixture
def signals(monkeypatch):
    """Return the signals that this process would have received."""
    sent = []
    monkeypatch.setattr(ownership, "CHECK_EVERY_S", 0.01)
    monkeypatch.setattr(ownership.os, "kill", lambda *sending: sent.append(sending))
    return sent


def holding(run, job: str, entered: list) -> threading.Thread:
    def hold():
        try:
            with Ownership(run, job).hold():
                entered.append(job)
        except TakenOver:
            entered.append(f"{job} was taken over")

    thread = threading.Thread(target=hold)
    thread.start()
    return thread


@contextmanager
def contested(run, caplog) -> Iterator[list]:
    """Hold a run that a second owner waits for, and let it go in the end; yield those that got it after that."""
    entered: list = []
    with Ownership(run, "first").hold():
        second = holding(run, "second", entered)
        until_logged(caplog, "(job first) to save its progress and stop")
        yield entered
    second.join(20)


def until_logged(caplog, text: str) -> None:
    until(lambda: text in caplog.text, text)


def test_a_run_is_held_as_long_as_its_block_lasts(tmp_path, signals):
    assert not is_locked(tmp_path)
    with Ownership(tmp_path, "first").hold():
        assert is_locked(tmp_path)
        time.sleep(0.1)
    assert not is_locked(tmp_path)
    assert not signals


def test_a_claim_is_lost_to_a_later_one_alone(tmp_path):
    first, second = Ownership(tmp_path, "same"), Ownership(tmp_path, "same")
    assert not first.is_lost
    first.claim_run()
    assert (first.is_lost, second.is_lost) == (False, True)
    second.claim_run()
    assert (first.is_lost, second.is_lost) == (True, False)
    (tmp_path / "state.jsonl").write_text("")
    assert not first.is_lost


@pytest.mark.parametrize("seed", range(3))
def test_altered_claim_is_not_taken_for_a_takeover(tmp_path, seed, caplog):
    rng = random.Random(seed)
    path = tmp_path / "state.jsonl"
    earlier = Ownership(tmp_path, "earlier")
    earlier.claim_run()
    begin = path.stat().st_size
    owner = Ownership(tmp_path, "owner")
    owner.claim_run()
    record_event(tmp_path, StartLine(event="start", time=1.0, job="7", restart=0, node="n1", pid=1, checkpoint=0))
    content = path.read_bytes()
    for _ in range(60):
        place = rng.randrange(begin, owner.position - 1)
        byte = rng.choice([byte for byte in range(256) if byte not in (10, content[place])])
        path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
        assert not owner.is_lost
        later = Ownership(tmp_path, "later")
        later.claim_run()
        assert owner.is_lost and not later.is_lost
    path.write_bytes(content[:begin] + b"x" + content[begin + 1 :])
    assert not owner.is_lost
    assert f"{path}: line 2 is damaged and left out" in caplog.text


def test_previous_owner_gets_one_signal_and_the_next_waits(tmp_path, signals, caplog):
    with contested(tmp_path, caplog) as entered:
        until(lambda: signals, "a signal")
        time.sleep(0.1)  # for many more checks
        assert signals == [(os.getpid(), 15)] and not entered
    assert entered == ["second"]
    (said,) = [record.getMessage() for record in caplog.records if "waiting for" in record.getMessage()]
    assert f"process {os.getpid()} on" in said and "(job first)" in said


def test_lock_removal_is_advised_only_after_time_to_stop(tmp_path, signals, caplog, monkeypatch):
    with contested(tmp_path, caplog):
        assert "run.lock" not in caplog.text
        monkeypatch.setattr(ownership, "LOG_EVERY_S", 0.0)
        until_logged(caplog, f"if it does not, end it; only if its machine is gone, remove {tmp_path}/run.lock")


def test_waiting_owner_yields_to_the_next_claim(tmp_path, signals, caplog):
    with contested(tmp_path, caplog) as entered:
        third = holding(tmp_path, "third", entered)
        until(lambda: entered, "the end of the second owner")
        assert entered == ["second was taken over"]
    third.join(20)
    assert entered == ["second was taken over", "third"]


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_file_system_without_locks_is_refused_and_holds_nothing(tmp_path, monkeypatch, number):
    monkeypatch.setattr("fcntl.flock", Mock(side_effect=OSError(number, os.strerror(number))))
    message = rf"no file locks \({os.strerror(number)}\); set `work:` to a folder on one that has"
    with pytest.raises(UserError, match=message):
        Ownership(tmp_path, "first").hold().__enter__()
    (tmp_path / "run.lock").touch()
    assert not is_locked(tmp_path)

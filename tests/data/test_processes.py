"""Work in several processes keeps order, reads little ahead, and reports dead workers."""

import logging
import os
import signal
from functools import partial

import pytest

from pipeline.core.errors import UserError
from pipeline.data.processes import ProgressLog, chunks, map_in_order
from pipeline.data.speech import speak


def square(number: int) -> int:
    return number * number


def die(number: int) -> int:
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order(processes):
    assert list(map_in_order(square, range(50), processes)) == [n * n for n in range(50)]
    assert list(map_in_order(square, [], processes)) == []


@pytest.mark.parametrize("processes", [0, -1, 100_000])
def test_process_count_out_of_bounds_is_refused(processes):
    with pytest.raises(UserError, match="--processes must be from 1 to 1024, got"):
        list(map_in_order(square, range(3), processes))


def test_input_is_read_only_a_little_ahead():
    taken = []
    results = map_in_order(square, (taken.append(n) or n for n in range(1000)), 2)
    for count in range(1, 20):
        next(results)
        assert len(taken) <= count + 6
    results.close()


def test_a_killed_worker_is_a_clear_error():
    with pytest.raises(UserError, match="worker process was killed"):
        list(map_in_order(die, range(20), 2))


def die_reading(tasks: list, domain: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_killed_reader_is_a_clear_error(monkeypatch, processes):
    monkeypatch.setattr(speak, "read_part", die_reading)
    with pytest.raises(UserError, match="reads aloud was killed"):
        list(map_in_order(partial(speak.in_fresh_process, domain="film"), [[], []], processes))


def test_chunks_hold_everything():
    assert list(chunks(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]


def test_progress_says_count_and_rate(caplog):
    with caplog.at_level(logging.INFO):
        progress = ProgressLog(logging.getLogger("toy"), "toy train: tokenised", "pairs")
        progress.advance(1500)
        progress.finish()
    assert "toy train: tokenised 1,500 pairs" in caplog.text and "a second" in caplog.text

import threading
import time

import pytest

from pipeline.training.step import Prefetcher


def test_every_step_comes_once_in_order_with_its_content():
    loaded = []
    prefetcher = Prefetcher(lambda step: loaded.append(step) or step**2)
    assert list(prefetcher.steps(3, 7)) == [(3, 9), (4, 16), (5, 25), (6, 36)]
    assert loaded == [3, 4, 5, 6] and not list(prefetcher.steps(4, 4))


def test_the_next_step_is_loaded_while_this_one_is_used():
    loaded = [threading.Event() for _ in range(3)]
    for step, _ in Prefetcher(lambda step: loaded[step].set()).steps(0, 3):
        assert step == 2 or loaded[step + 1].wait(5)


def test_the_wait_is_counted():
    prefetcher = Prefetcher(lambda step: time.sleep(0.05))
    list(prefetcher.steps(0, 2))
    assert prefetcher.waited_s > 0.08


def test_an_error_in_loading_is_raised_where_the_step_is_used():
    steps = Prefetcher(lambda step: 1 // (2 - step)).steps(0, 4)
    assert next(steps) == (0, 0) and next(steps) == (1, 1)
    with pytest.raises(ZeroDivisionError):
        next(steps)

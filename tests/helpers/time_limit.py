"""Limits of processor time, for what must not take quadratic time, and of the time that is waited for something."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

PATIENCE_S = 400  # nothing takes that long, unless the machine does other things too


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block takes more processor time."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


def until(condition: Callable[[], object], what: str) -> None:
    """Poll until `condition()` is true; fail the test when patience runs out."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {PATIENCE_S} s")
        time.sleep(0.02)

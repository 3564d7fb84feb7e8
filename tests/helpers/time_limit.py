"""A limit of processor time for what must not take quadratic time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block takes more processor time."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds

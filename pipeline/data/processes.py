"""Parallel work on chunks in order and with bounded memory, and progress lines."""

import logging
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from pipeline.core.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

WAITING_PER_PROCESS = 3


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item], processes: int) -> Iterator[Result]:
    """Map a function over items with several processes, in order.

    At most a few items per process are read ahead.

    Args:
        function: Function of one item; it and its items are pickled.
        items: Items, read as results are taken.
        processes: Number of processes, 1 to 1024; 1 computes in this process.

    Yields:
        The result of each item.

    Raises:
        UserError: A worker process was killed, mostly for lack of memory, or `processes` is out of range.
    """
    if not 1 <= processes <= 1024:
        raise UserError(f"--processes must be from 1 to 1024, got {processes}")
    if processes == 1:
        yield from map(function, items)
        return
    items = iter(items)
    try:
        with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork")) as pool:
            waiting = deque(pool.submit(function, item) for item in islice(items, processes * WAITING_PER_PROCESS))
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(pool.submit(function, item) for item in islice(items, 1))
                yield result
    except BrokenProcessPool as error:
        raise UserError("a worker process was killed, perhaps for lack of memory; lower `--processes`") from error


def chunks(lines: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` of the `lines`, of any kind; the last one may be shorter."""
    lines = iter(lines)
    while chunk := list(islice(lines, size)):
        yield chunk


class ProgressLog:
    """Logger of the number of finished items and their rate, every few seconds and at the end.

    Args:
        log: Logger of the stage.
        what: Dataset, split and activity.
        items: Name of the items, plural.
    """

    SECONDS_BETWEEN_LINES = 5

    def __init__(self, log: logging.Logger, what: str, items: str):
        self.log, self.what, self.items = log, what, items
        self.done = 0
        self.start = self.logged = time.monotonic()

    def advance(self, count: int) -> None:
        """Count finished items."""
        self.done += count
        if time.monotonic() - self.logged >= self.SECONDS_BETWEEN_LINES:
            self.logged = time.monotonic()
            self.finish()

    def finish(self) -> None:
        """Log the current count and rate."""
        seconds = max(time.monotonic() - self.start, 1e-3)
        self.log.info("%s %s %s, %s a second", self.what, f"{self.done:,}", self.items, f"{self.done / seconds:,.0f}")

"""Work on chunks in several processes, results in order, memory bounded."""

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
    """`map` over `processes` processes; no more than a few items a process are read ahead of the results.

    Raises:
        UserError: a process was killed, most often for want of memory; or `processes` is no number of them.
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
        raise UserError("a worker was killed, perhaps for want of memory; run with fewer `--processes`") from error


def chunks(lines: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` lines, the last one shorter."""
    lines = iter(lines)
    while chunk := list(islice(lines, size)):
        yield chunk


class Progress:
    """Logs how many items are done and how fast, every few seconds and at the end."""

    SECONDS_BETWEEN_LINES = 5

    def __init__(self, log: logging.Logger, what: str, items: str):
        self.log, self.what, self.items = log, what, items
        self.done = 0
        self.start = self.said = time.monotonic()

    def advance(self, count: int) -> None:
        self.done += count
        if time.monotonic() - self.said >= self.SECONDS_BETWEEN_LINES:
            self.said = time.monotonic()
            self.finish()

    def finish(self) -> None:
        seconds = max(time.monotonic() - self.start, 1e-3)
        self.log.info("%s %s %s, %s a second", self.what, f"{self.done:,}", self.items, f"{self.done / seconds:,.0f}")

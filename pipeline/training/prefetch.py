"""Composing the next update while the current one is computed."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Loaded = TypeVar("Loaded")


class Prefetcher(Generic[Loaded]):
    """Calls `load(step)` one step ahead in a thread; `waited_s` adds up the seconds the caller had to wait."""

    def __init__(self, load: Callable[[int], Loaded]):
        self.load, self.waited_s = load, 0.0

    def steps(self, first: int, end: int) -> Iterator[tuple[int, Loaded]]:
        """(step, load(step)) for first … end - 1."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches") as pool:
            coming = pool.submit(self.load, first)
            for step in range(first, end):
                started = time.perf_counter()
                loaded = coming.result()
                self.waited_s += time.perf_counter() - started
                if step + 1 < end:
                    coming = pool.submit(self.load, step + 1)
                yield step, loaded

"""Work that a thread does while the training goes on, one thing after the other."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

AT_ONCE = 2
"""Begun or waiting, each with a copy of what it writes: whoever comes with a third waits."""


class Background:
    """In the order in which it was asked for; what fails is raised to whoever comes next."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints")
        self.left: deque[Future] = deque()

    def do(self, work: Callable[[], object]) -> None:
        while len(self.left) >= AT_ONCE or (self.left and self.left[0].done()):
            self.left.popleft().result()
        self.left.append(self.pool.submit(work))

    def finish(self) -> None:
        while self.left:
            self.left.popleft().result()

    def close(self) -> None:
        """Wait until all is done or has failed."""
        self.pool.shutdown()

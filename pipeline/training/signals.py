"""Being asked to stop: noted when the signal comes, acted on between two updates."""

import logging
import signal
import threading
from types import FrameType

log = logging.getLogger(__name__)
EXIT_TO_BE_CONTINUED = 75  # EX_TEMPFAIL: run the same command again


class StopRequest:
    """While entered, SIGTERM, SIGUSR2 and the first SIGINT only set `signal`, the number of what came.

    SIGTERM and SIGUSR2 announce a preemption or a time limit, SIGINT is Ctrl-C; a second Ctrl-C stops at once.
    """

    def __init__(self):
        self.signal: int | None = None
        self._previous = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGUSR2, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number

    @property
    def exit_code(self) -> int:
        """75 for a preemption (run the same command again), 130 after Ctrl-C as shells have it."""
        return 128 + signal.SIGINT if self.signal == signal.SIGINT else EXIT_TO_BE_CONTINUED

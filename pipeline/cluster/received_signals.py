"""Which signals have come, whoever handles them.

SIGUSR2 means that the cluster wants its node back (time limit near, preemption): the job goes back into the queue.
SIGTERM means that somebody ends the job (scancel), or that Slurm ends and requeues it without our help. Both make
the job's function save and stop, through handlers of its own; afterwards we have to know which it was.
"""

import contextlib
import os
import signal


class SignalRecord:
    """The numbers of all signals with a Python handler that this process received since this was made."""

    def __init__(self):
        self._seen: set[int] = set()
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    @property
    def asks_to_go_on_later(self) -> bool:
        with contextlib.suppress(BlockingIOError):  # nothing new
            self._seen.update(os.read(self._reader, 4096))
        return signal.SIGUSR2 in self._seen and signal.SIGTERM not in self._seen

"""A job's log, as it grows."""

from collections.abc import Iterator
from pathlib import Path

from pipeline.core.files import tail

BACKLOG_BYTES = 4096  # of a job that was running before we came


class LogTail:
    """Reads what was added to a log since it last looked, whole lines only.

    Args:
        path: the log; may not exist yet. None: there is none, nothing is ever new.
        from_start: False skips all but the last lines of what is there already.
    """

    def __init__(self, path: Path | None, from_start: bool):
        self.path = path
        self.position = 0
        if path is not None and not from_start and path.exists():
            self.position = max(0, path.stat().st_size - BACKLOG_BYTES)

    def new_lines(self) -> Iterator[str]:
        if self.path is None or not self.path.exists():
            return
        with open(self.path, "rb") as handle:
            handle.seek(self.position)
            added = handle.read()
        whole, newline, _ = added.rpartition(b"\n")
        self.position += len(whole) + len(newline)
        for line in whole.split(b"\n") if newline else ():
            yield line.decode(errors="replace")


def last_lines(path: Path | None, number: int) -> str:
    """The last lines of a log, for an error message; says so when there are none."""
    if path is None:
        return "(the log is above)"
    if not path.exists():
        return "(no log was written)"
    lines = tail(path, 100 * number).decode(errors="replace").rstrip("\n").split("\n")
    return "\n".join(lines[-number:])

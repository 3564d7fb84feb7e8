"""Files that are either whole or absent: written under a temporary name, synced, then renamed."""

import contextlib
import errno
import io
import itertools
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

from pipeline.core.errors import UserError

log = logging.getLogger(__name__)
ORPHAN_AFTER_S = 24 * 3600
NOTES = ".digests"
MADE: dict[Path, None] = {}
"""What this process wrote, in order."""


@contextlib.contextmanager
def atomic_write(path: Path, mode: str = "w") -> Iterator[IO]:
    """Write an output of this process: whole or not at all, with its old digest forgotten.

    Args:
        path: The file to write; its folder need not exist yet.
        mode: "w" or "wb".

    Raises:
        UserError: The disk is full or the folder cannot be written; `path` keeps its old content.
    """
    path = Path(path)
    with replacing(path, mode, before=lambda: note_of(path).unlink(missing_ok=True)) as handle:
        yield handle
    made(path)


@contextlib.contextmanager
def replacing(path: Path, mode: str = "w", before: Callable[[], None] = lambda: None) -> Iterator[IO]:
    """Open a temporary sibling of `path`; on success fsync and rename it, on failure remove it.

    Args:
        path: The file to write.
        mode: "w" or "wb".
        before: Called right before the rename.

    Raises:
        UserError: As `atomic_write` does.
    """
    temporary = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}.tmp")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            sweep(path.parent)
            content: IO = io.BufferedWriter(Disk(temporary, path))
        with content if "b" in mode else io.TextIOWrapper(content, encoding="utf-8", newline="\n") as handle:
            yield handle
            handle.flush()
            with writing(path):
                os.fsync(handle.fileno())
        with writing(path):
            before()
            os.replace(temporary, path)
            sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


class Disk(io.FileIO):
    """A file to be written for `wanted`. Its own failures alone are the disk's; what else fails beside it is not."""

    def __init__(self, path: Path, wanted: Path, mode: str = "wb"):
        super().__init__(path, mode)
        self.wanted = wanted

    def write(self, content: Any) -> int:
        with writing(self.wanted):
            return super().write(content)

    def close(self) -> None:
        """Close the descriptor; an interrupted close has closed it, too, and what was written was synced before."""
        with writing(self.wanted), contextlib.suppress(InterruptedError):
            super().close()


HINTS = {
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "make its folder writable"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space"),
    errno.ENAMETOOLONG: "give it a shorter name",
}
"""What mends a refusal; of any other the disk itself is the cause."""


@contextlib.contextmanager
def writing(path: Path, otherwise: str = "choose another `work:`") -> Iterator[None]:
    """Raises UserError where the system can't write `path`. otherwise: what to do if that can't be mended."""
    try:
        yield
    except OSError as error:
        hint = HINTS.get(error.errno or 0, "check its disk, then run the same command again,")
        raise UserError(f"can't write {path}: {error.strerror or error}; {hint} or {otherwise}") from error


@contextlib.contextmanager
def reading(otherwise: str) -> Iterator[None]:
    """Raises UserError where a file that is read is missing. otherwise: what to do then."""
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(f"{error.filename}: no such file; {otherwise}") from error


@cache
def sweep(folder: Path) -> None:
    """Remove what killed processes left half-written in a folder; of other hosts and users, what is older than a day.

    Once a process: of what is written later the writer lives.
    """
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):  # it was finished meanwhile, or is for its owner alone to remove
            if is_orphan(path):
                log.info("removing %s, left half-written by a killed process", path)
                path.unlink()


def is_orphan(path: Path) -> bool:
    """Of a temporary file of `atomic_write`: whether its writer is gone. Others' processes may be hidden."""
    writer = re.fullmatch(r"\..+\.(\d+)\.tmp", path.name)
    if writer and path.name.endswith(f".{os.uname().nodename}.{writer[1]}.tmp") and path.stat().st_uid == os.getuid():
        return not Path("/proc", writer[1]).exists()
    return writer is not None and path.stat().st_mtime < time.time() - ORPHAN_AFTER_S


def made(path: Path) -> None:
    """What a stage wrote in other ways than by `atomic_write`, a folder of files perhaps, is told here."""
    MADE[Path(os.path.abspath(path))] = None


def note_of(path: Path) -> Path:
    """Where the digest of a file, or of a folder's files, is noted (pipeline/core/digests.py)."""
    return path.parent / NOTES / path.name


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a file, without their ends; a last one without its end, which a crash cut, is left out and named."""
    *lines, cut = Path(path).read_bytes().split(b"\n")
    if cut:
        log.warning("%s: line %d is cut off and left out", path, len(lines) + 1)
    return lines


def append_line(path: Path, line: bytes) -> None:
    """Append `line`, which has its end, in a single write, so that lines of several writers never mix.

    What a crash left of a last line is truncated away first.

    Raises:
        UserError: The file cannot be written.
    """
    with writing(path):
        note_of(path).unlink(missing_ok=True)
        with Disk(path, path, "a+b") as handle:
            handle.seek(max(0, handle.seek(0, os.SEEK_END) - 1))
            if handle.read() not in (b"", b"\n"):
                handle.seek(0)
                content = handle.readall()
                log.warning("%s: its last line is cut off and removed", path)
                handle.truncate(content.rfind(b"\n") + 1)
            handle.write(line)


def set_aside(path: Path, why: str = "damaged") -> Path:
    """Rename a damaged file to `NAME.damaged`, or `NAME.damaged-2` …, so that nothing takes it for a good one.

    why: the ending, where a file is whole, but stands for others that are not. Its digest is noted no more.
    """
    names = itertools.chain((why,), (f"{why}-{number}" for number in itertools.count(2)))
    aside = next(one for name in names if not (one := path.with_name(f"{path.name}.{name}")).exists())
    with contextlib.suppress(FileNotFoundError):
        path.rename(aside)
    note_of(path).unlink(missing_ok=True)
    return aside


def tail(path: Path, size: int) -> bytes:
    """So many bytes at the end of a file, or all of it. Raises FileNotFoundError."""
    with open(path, "rb") as handle:
        handle.seek(max(0, os.fstat(handle.fileno()).st_size - size))
        return handle.read()

"""Files that are either whole or absent: written under a temporary name, synced, then renamed."""

import contextlib
import errno
import io
import itertools
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

from pipeline.core.errors import UserError

log = logging.getLogger(__name__)
ORPHAN_AFTER_S = 24 * 3600
NOTES = ".digests"
WRITTEN_FILES: dict[Path, None] = {}
"""Outputs of this process, in order."""


@contextlib.contextmanager
def atomic_write(path: Path, mode: str = "w") -> Iterator[IO]:
    """Write `path`, an output, atomically with `mode` "w" or "wb", and remove its old digest; see `replace_file`.

    Yields:
        The file, open for writing.

    Raises:
        UserError: The disk is full or the folder cannot be written; `path` keeps its old content.
    """
    path = Path(path)
    with replace_file(path, mode, before=lambda: note_path(path).unlink(missing_ok=True)) as handle:
        yield handle
    register_output(path)


@contextlib.contextmanager
def replace_file(path: Path, mode: str = "w", before: Callable[[], None] = lambda: None) -> Iterator[IO]:
    """Open a temporary sibling of `path`; on success sync and rename it, on failure remove it.

    Args:
        path: The file to write.
        mode: "w" or "wb".
        before: Called right before the rename.

    Yields:
        The temporary file, open for writing.

    Raises:
        UserError: The disk is full or the folder cannot be written; `path` keeps its old content.
    """
    temporary = temporary_sibling(path)
    try:
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            remove_orphans(path.parent)
            content: IO = io.BufferedWriter(Disk(temporary, path))
        with content if "b" in mode else io.TextIOWrapper(content, encoding="utf-8", newline="\n") as handle:
            yield handle
            handle.flush()
            with write_errors(path):
                os.fsync(handle.fileno())
        with write_errors(path):
            before()
            os.replace(temporary, path)
            sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):  # it was renamed or never made; the next writer removes a leftover
            temporary.unlink()


def temporary_sibling(path: Path) -> Path:
    """Return a name beside `path` that no other process uses; `remove_orphans` knows its form."""
    return path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}.tmp")


class Disk(io.FileIO):
    """A file whose write errors name the file that was wanted.

    Only its own failures are reported as failures of the disk, not those of other code in the same block.
    """

    def __init__(self, path: Path, wanted: Path, mode: str = "wb"):
        super().__init__(path, mode)
        self.wanted = wanted

    def write(self, content: Any) -> int:
        """Return the number of bytes written.

        Raises:
            UserError: The system cannot write them.
        """
        with write_errors(self.wanted):
            return super().write(content)

    def close(self) -> None:
        """Close the file. An interrupted close has closed it, too, and its content was synced before."""
        with write_errors(self.wanted), contextlib.suppress(InterruptedError):
            super().close()


HINTS = {
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "make its folder writable"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space"),
    errno.ENAMETOOLONG: "give it a shorter name",
}
"""Remedies by error number. For any other number the disk itself is the cause."""


@contextlib.contextmanager
def write_errors(path: Path, otherwise: str = "choose another `work:`") -> Iterator[None]:
    """Turn a system error while writing `path` into a UserError; `otherwise` is what to do besides.

    Raises:
        UserError: The system cannot write the file.
    """
    try:
        yield
    except OSError as error:
        hint = HINTS.get(error.errno or 0, "check its disk, then run the same command again,")
        raise UserError(f"can't write {path}: {error.strerror or error}; {hint} or {otherwise}") from error


@contextlib.contextmanager
def read_errors(otherwise: str) -> Iterator[None]:
    """Turn a missing file into a UserError.

    Raises:
        UserError: The file does not exist.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(f"{error.filename}: no such file; {otherwise}") from error


@cache
def remove_orphans(folder: Path) -> None:
    """Remove temporary files and folders that killed processes left in a folder.

    Those of other hosts and users are removed after a day. Each folder is swept once per process.
    """
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):  # its writer has finished, or it belongs to another user
            if is_orphan(path):
                log.info("removing %s, left half-written by a killed process", path)
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def is_orphan(path: Path) -> bool:
    """Return whether the writer of a temporary file or folder is gone. Processes of other users may be hidden."""
    writer = re.fullmatch(r"\..+\.(\d+)\.tmp", path.name)
    if writer and path.name.endswith(f".{os.uname().nodename}.{writer[1]}.tmp") and path.stat().st_uid == os.getuid():
        return not Path("/proc", writer[1]).exists()
    return writer is not None and path.stat().st_mtime < time.time() - ORPHAN_AFTER_S


def register_output(path: Path) -> None:
    """Register an output that was not written by `atomic_write`, such as a folder of files."""
    WRITTEN_FILES[Path(os.path.abspath(path))] = None


def note_path(path: Path) -> Path:
    """Return where the digest of a file or folder is noted (pipeline/core/digests.py)."""
    return path.parent / NOTES / path.name


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that a rename in it survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def complete_lines(path: Path) -> list[bytes]:
    """Read the lines of a file without their ends; leave out and log a last line that a crash cut."""
    *lines, cut = Path(path).read_bytes().split(b"\n")
    if cut:
        log.warning("%s: line %d is cut off and left out", path, len(lines) + 1)
    return lines


def append_line(path: Path, line: bytes, shared: bool = False) -> int:
    """Append a line in a single write, after truncating a last line that a crash cut.

    Args:
        path: The file.
        line: The line with its end.
        shared: Lock the file during the write, because other processes may append at the same time.

    Returns:
        Position of the end of the line in the file, in bytes.

    Raises:
        UserError: The file cannot be written or locked.
    """
    with write_errors(path):
        note_path(path).unlink(missing_ok=True)
        with Disk(path, path, "a+b") as handle:
            if shared:
                acquire_lock(handle.fileno())
            handle.seek(max(0, handle.seek(0, os.SEEK_END) - 1))
            if handle.read() not in (b"", b"\n"):
                handle.seek(0)
                content = handle.readall()
                log.warning("%s: its last line is cut off and removed", path)
                handle.truncate(content.rfind(b"\n") + 1)
            while line:
                line = line[handle.write(line) :]  # a full disk may take a part, before it refuses the next
            return handle.tell()


def acquire_lock(descriptor: int, blocking: bool = True) -> bool:
    """Return whether this process got the exclusive lock on the open file `descriptor`; wait for it if `blocking`.

    The kernel or the file server releases it when the file is closed or its process dies.

    Raises:
        UserError: The file system has no locks, so nothing would keep two jobs apart.
    """
    from filelock import lock_descriptor  # takes 40 ms, which most commands do not need

    try:
        return lock_descriptor(descriptor, blocking=blocking)
    except OSError as error:
        raise UserError(
            f"the file system of the work folder has no file locks ({error.strerror}); "
            "set `work:` to a folder on one that has (NFSv4, Lustre mounted with -o flock, GPFS, local disk)"
        ) from error


def path_aside(path: Path) -> Path:
    """Return the first free name of `NAME.damaged`, `NAME.damaged-2` and so on."""
    endings = itertools.chain(("",), (f"-{number}" for number in itertools.count(2)))
    return next(free for end in endings if not (free := path.with_name(f"{path.name}.damaged{end}")).exists())


def set_aside(path: Path) -> Path:
    """Rename a damaged file to the result of `path_aside`, remove its note, and return the new path."""
    aside = path_aside(path)
    with contextlib.suppress(FileNotFoundError):  # another process has set it aside
        path.rename(aside)
    note_path(path).unlink(missing_ok=True)
    return aside


def tail(path: Path, size: int) -> bytes:
    """Return the last `size` bytes of `path`, or all of a shorter one.

    Raises:
        FileNotFoundError: There is no such file.
    """
    with open(path, "rb") as handle:
        handle.seek(max(0, os.fstat(handle.fileno()).st_size - size))
        return handle.read()

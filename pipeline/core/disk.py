"""Disks: checks of space, folders of this user, and retries of reads and stages after transient I/O errors."""

import errno
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

from pipeline.core.errors import UnreadableError, UserError, command_advice

log = logging.getLogger(__name__)
SPARE_BYTES = 64 << 20
"""Bytes left free for logs and other writers."""


def require_space(folder: Path, needed: float, what: str) -> None:
    """Check that the disk of a `folder`, which need not exist yet, can hold `needed` bytes of `what`.

    Raises:
        UserError: The disk has too little space.
    """
    existing = nearest_existing(folder)
    free = shutil.disk_usage(existing).free
    if needed + SPARE_BYTES > free:
        raise UserError(
            f"{folder}: {what} will need {format_bytes(needed)} and a reserve of {format_bytes(SPARE_BYTES)}, but "
            f"{format_bytes(free)} are free; free some space ({command_advice('free')} lists what finished tables no "
            "longer need), or choose another `work:`"
        )


def require_writable(folder: Path, option: str = "`work:`") -> None:
    """Check that files can be written to a `folder`, which need not exist yet and which an `option` names.

    Raises:
        UserError: The folder is not writable.
    """
    try:
        tempfile.TemporaryFile(dir=nearest_existing(folder)).close()
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}; make it writable, or choose another {option}") from error


def own_folder() -> Path:
    """Return a folder on the machine's disk that belongs to this user, and create it.

    Raises:
        UserError: The folder belongs to another user.
    """
    folder = Path(tempfile.gettempdir()) / f"reprise-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise UserError(f"{folder} belongs to another user; set TMPDIR to a folder of your own on this machine")
    return folder


def cache_folder() -> Path:
    """Return the cache folder of this user, or `own_folder` if their home is not writable."""
    given = (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache"))
    return next((Path(caches) / "reprise" for caches in given if can_hold_files(caches)), None) or own_folder()


def can_hold_files(folder: str) -> bool:
    """Return whether an absolute path is a writable folder, or can become one."""
    there = nearest_existing(Path(folder)) if os.path.isabs(folder) else None
    return there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def nearest_existing(folder: Path) -> Path:
    """Return the folder itself or its nearest parent that exists."""
    return next(path for path in (Path(folder), *Path(folder).absolute().parents) if os.path.exists(path))


def format_bytes(count: float) -> str:
    """Format a number of bytes: 812 B, 3.3 MB, 54.3 GB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count:.0f} B"


Found = TypeVar("Found")

READ_PAUSES_S = (0.1, 0.5, 2.0)  # a server's fail-over takes longer; the job's next start covers it
PAUSES_S = (1.0, 5.0, 25.0)
LASTING_NAMES = (
    "EACCES EPERM EROFS ENOSPC EDQUOT EFBIG ENOENT ENOTDIR EISDIR EEXIST ENOTEMPTY ENAMETOOLONG ELOOP EMLINK EXDEV "
    "EINVAL EILSEQ EOVERFLOW EBADF ENOTTY ESPIPE EPIPE ENXIO ENODEV ENOSYS EOPNOTSUPP ETXTBSY EFAULT E2BIG ENOEXEC "
    "ECHILD ESRCH"
)
LASTING = frozenset(getattr(errno, name) for name in LASTING_NAMES.split())
"""Errors that the same call meets again until somebody acts. All others may pass."""


def read_with_retries(path: Path, head: Callable[[IO[bytes]], int] | None = None) -> bytes:
    """Return the bytes of `path`, with the retries of `retry_read`.

    `head` returns how many bytes to read from the start of the opened file; None reads all.

    Raises:
        FileNotFoundError: There is no such file.
        UnreadableError: The file cannot be read after all retries.
    """

    def read() -> bytes:
        with open(path, "rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            wanted = size if head is None else min(size, head(handle))
            handle.seek(0)
            content = handle.read(wanted)
        if len(content) != wanted:
            raise OSError(errno.EIO, f"only {len(content)} of {wanted} bytes could be read")
        return content

    return retry_read(path, read)


def retry_read(path: Path, read: Callable[[], Found]) -> Found:
    """Return the result of `read`, which reads `path`; retry after a pause if the system cannot read.

    Raises:
        FileNotFoundError: There is no such file.
        UnreadableError: The file cannot be read after all retries.
    """
    pauses = iter(READ_PAUSES_S)
    while True:
        try:
            return read()
        except FileNotFoundError:
            raise
        except OSError as error:
            pause = next(pauses, None)
            if pause is None or error.errno in LASTING:
                raise UnreadableError(
                    f"{path}: can't be read: {error.strerror or error}; nothing was removed: check the disk, then run "
                    "the same command again"
                ) from error
            log.warning("%s: can't be read (%s), retrying in %s s", path, error.strerror or error, pause)
            time.sleep(pause)


class LastingError(UserError):
    """A file error that remained after all retries of a stage."""


def retry_stage(work: Callable[[], None]) -> None:
    """Run a stage, and retry it after growing pauses if a file error stopped it.

    Raises:
        UserError: `work` raised it, and no file error caused it.
        LastingError: The file error remained after all retries, or no retry can help.
        OSError: Replaced by LastingError, which names the file.
    """
    pauses = iter(PAUSES_S)
    while True:
        try:
            return work()
        except (UserError, OSError) as error:
            refusal, pause = system_error_behind(error), next(pauses, None)
            if refusal is None:
                raise
            if refusal.errno in LASTING or pause is None:
                raise LastingError(error_message(error)) from error
            log.warning("%s; retrying in %g s", error, pause)
            time.sleep(pause)


def system_error_behind(error: BaseException | None) -> OSError | None:
    """Return the system error that caused `error`, unless `retry_stage` has already retried it."""
    while error and not isinstance(error, LastingError):
        if isinstance(error, OSError):
            return error
        error = error.__cause__
    return None


def error_message(error: UserError | OSError) -> str:
    """Describe a system error in one line, with its file."""
    if isinstance(error, UserError):
        return str(error)
    name, what = error.filename or "a file of this stage", error.strerror or error
    return f"{name}: {what}; nothing was removed: check the disk and its rights, then run the same command again"

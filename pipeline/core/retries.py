"""Retries of reads and of whole stages after transient I/O errors, as network file systems produce."""

import errno
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

from pipeline.core.errors import UnreadableError, UserError

log = logging.getLogger(__name__)
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

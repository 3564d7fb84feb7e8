"""What files fail for a moment is done again, a reading or a whole stage: network disks do now and then."""

import errno
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

from pipeline.core.errors import UnreadableError, UserError

Found = TypeVar("Found")

log = logging.getLogger(__name__)

READ_PAUSES_S = (0.1, 0.5, 2.0)  # a server that fails over takes longer, but then the job's next start is due
PAUSES_S = (1.0, 5.0, 25.0)
LASTING = frozenset(
    getattr(errno, name)
    for name in (
        *(
            "EACCES",
            "EPERM",
            "EROFS",
            "ENOSPC",
            "EDQUOT",
            "EFBIG",
            "ENOENT",
            "ENOTDIR",
            "EISDIR",
            "EEXIST",
            "ENOTEMPTY",
        ),
        *("ENAMETOOLONG", "ELOOP", "EMLINK", "EXDEV", "EINVAL", "EILSEQ", "EOVERFLOW", "EBADF", "ENOTTY", "ESPIPE"),
        *(
            "EPIPE",
            "ENXIO",
            "ENODEV",
            "ENOSYS",
            "EOPNOTSUPP",
            "ETXTBSY",
            "EFAULT",
            "E2BIG",
            "ENOEXEC",
            "ECHILD",
            "ESRCH",
        ),
    )
)
"""What the same call meets again until somebody acts. Any other errno may pass: file systems answer with many."""


def read_patiently(path: Path, head: Callable[[IO[bytes]], int] | None = None) -> bytes:
    """The bytes of `path`; as patient as `patiently`.

    head: finds in the opened file how many bytes from its beginning are wanted; None: all.
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

    return patiently(path, read)


def patiently(path: Path, read: Callable[[], Found]) -> Found:
    """What `read` gives; where the system can't read, again after a pause: network disks fail now and then.

    Raises:
        FileNotFoundError: there is no such file.
        UnreadableError: it can't be read, again and again.
    """
    for pause in (*READ_PAUSES_S, None):
        try:
            return read()
        except FileNotFoundError:
            raise
        except OSError as error:
            if pause is None or error.errno in LASTING:
                raise UnreadableError(
                    f"{path}: can't be read: {error.strerror or error}; nothing was removed: check the disk, then run "
                    "the same command again"
                ) from error
            log.warning("%s: can't be read (%s), trying again in %s s", path, error.strerror or error, pause)
            time.sleep(pause)
    raise AssertionError("the last pause is None")


class LastingError(UserError):
    """A file failed a stage again and again."""


def persevere(work: Callable[[], None]) -> None:
    """Do `work`, which may be done again at any time; again, after growing pauses, where a file failed it.

    Raises:
        UserError: as `work` does, and where the system refuses what `work` wants of a file.
    """
    for pause in (*PAUSES_S, None):
        try:
            return work()
        except (UserError, OSError) as error:
            refusal = refusal_behind(error)
            if refusal is None:
                raise
            if refusal.errno in LASTING or pause is None:
                raise LastingError(explained(error)) from error
            log.warning("%s; trying again in %g s", error, pause)
        time.sleep(pause)
    return None


def refusal_behind(error: BaseException | None) -> OSError | None:
    """The system's error that `error` is about, if it is, and nobody has persevered in it yet."""
    while error and not isinstance(error, LastingError):
        if isinstance(error, OSError):
            return error
        error = error.__cause__
    return None


def explained(error: UserError | OSError) -> str:
    if isinstance(error, UserError):
        return str(error)
    name, what = error.filename or "a file of this stage", error.strerror or error
    return f"{name}: {what}; nothing was removed: check the disk and its rights, then run the same command again"

"""A stage that its files fail for a moment is done again: network disks do now and then, and it may be repeated."""

import errno
import logging
import time
from collections.abc import Callable

from pipeline.errors import UserError

log = logging.getLogger(__name__)

PAUSES_S = (1.0, 5.0, 25.0)
PASSING = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EREMOTEIO)


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
            if refusal.errno not in PASSING or pause is None:
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

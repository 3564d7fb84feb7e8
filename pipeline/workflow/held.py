"""Who works on a run now; the lock is taken by pipeline/training/ownership.py."""

import errno
import fcntl
from pathlib import Path


def is_held(folder: Path) -> bool:
    """Whether a process on this machine works on the run."""
    try:
        with open(folder / "run.lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
        return False  # without locks no training begins
    return False

"""Disks: checks of space, and folders of this user."""

import os
import shutil
import tempfile
from pathlib import Path

from pipeline.core.errors import UserError, command_advice

SPARE_BYTES = 64 << 20
"""Bytes left free for logs and other writers."""


def require_space(folder: Path, needed: float, what: str, otherwise: str = "choose another `work:`") -> None:
    """Check that the disk of a `folder`, which need not exist yet, can hold `needed` bytes of `what`.

    Args:
        folder: Where it will be written.
        needed: Bytes.
        what: What will be written, for the message.
        otherwise: What to do besides freeing space.

    Raises:
        UserError: The disk has too little space.
    """
    existing = nearest_existing(folder)
    free = shutil.disk_usage(existing).free
    if needed + SPARE_BYTES > free:
        raise UserError(
            f"{folder}: {what} will need {format_bytes(needed)} and a reserve of {format_bytes(SPARE_BYTES)}, but "
            f"{format_bytes(free)} are free; free some space ({command_advice('free')} lists what finished tables no "
            f"longer need), or {otherwise}"
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

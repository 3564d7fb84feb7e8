"""Space on a disk, asked for before it is used."""

import os
import shutil
import tempfile
from pathlib import Path

from pipeline.core.advice import advised
from pipeline.core.errors import UserError

SPARE_BYTES = 64 << 20
"""Left to logs and to what else writes there."""


def require_space(folder: Path, needed: float, what: str) -> None:
    """Raises UserError when the disk of `folder`, which need not exist yet, can't hold `needed` bytes more."""
    existing = nearest(folder)
    free = shutil.disk_usage(existing).free
    if needed + SPARE_BYTES > free:
        raise UserError(
            f"{folder}: {what} will need {size(needed)} and {size(SPARE_BYTES)} to spare, {size(free)} are free; free "
            f"some space ({advised('free')} says what finished tables no longer need), or choose another `work:`"
        )


def require_writable(folder: Path, option: str = "`work:`") -> None:
    """Raises UserError when nothing can be written to `folder`, which need not exist yet and which `option` names."""
    try:
        tempfile.TemporaryFile(dir=nearest(folder)).close()
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}; make it writable, or choose another {option}") from error


def own_folder() -> Path:
    """A folder of this user's own on the machine's disk. Raises UserError where somebody else made it."""
    folder = Path(tempfile.gettempdir()) / f"reprise-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise UserError(f"{folder} belongs to somebody else; set TMPDIR to a folder of your own on this machine")
    return folder


def cache_folder() -> Path:
    """Return a folder of this user's own that lasts, or `own_folder` for a user whose home is not to be written to."""
    given = (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache"))
    return next((Path(caches) / "reprise" for caches in given if can_hold_files(caches)), None) or own_folder()


def can_hold_files(folder: str) -> bool:
    """Return whether an absolute path is a folder to write to, or can become one."""
    there = nearest(Path(folder)) if os.path.isabs(folder) else None
    return there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def nearest(folder: Path) -> Path:
    """It or the folder above it that is there."""
    return next(path for path in (Path(folder), *Path(folder).absolute().parents) if os.path.exists(path))


def size(count: float) -> str:
    """A number of bytes in words: 812 B, 3.3 MB, 54.3 GB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count:.0f} B"

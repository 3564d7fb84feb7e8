"""SHA-256 of every file that a stage made, noted when it ended: in `.digests/NAME` beside NAME.

A note is removed before its file is written again or set aside, so it always describes the file that is there. For a
folder of many files, such as recordings, one digest of all is noted. A note also holds its file's time of change, which
a copy of the work folder may lose (pipeline/workflow/times.py).
"""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.advice import advised
from pipeline.core.errors import UserError
from pipeline.core.files import MADE, NOTES, note_of, replacing
from pipeline.core.sha256 import sha256_file, sha256_json


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """Note the digests of what is made while the block runs, if it ends well."""
    MADE.clear()
    yield
    for path in MADE:
        if path.exists():
            note(path)
    MADE.clear()


def note(path: Path) -> None:
    """Write the note of a file or folder, whole or not at all.

    Raises:
        UserError: The note cannot be written.
    """
    changed_ns = path.stat().st_mtime_ns
    with replacing(note_of(path)) as file:
        file.write(f"{digest_of(path)} {changed_ns}\n")


def digest_of(path: Path) -> str:
    """Of a file, or of the names and contents of all files in a folder.

    Raises:
        OSError: it is not there, or can't be read.
    """
    if not path.is_dir():
        return sha256_file(path)
    files = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sha256_json({str(file.relative_to(path)): sha256_file(file) for file in files})


class DamagedNoteError(UserError):
    """A note that holds no digest, so nothing shows whether its file is what was written."""


@dataclass(frozen=True)
class Note:
    """The digest of a file, and the time of its last change, in ns, when the digest was taken."""

    digest: str
    changed_ns: int | None
    """None in notes of earlier versions."""


def read_note(path: Path) -> Note | None:
    """Read the note of a file; None when there is none.

    Raises:
        DamagedNoteError: The note is empty, cut or altered.
    """
    try:
        content = note_of(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if found := re.fullmatch(rb"([0-9a-f]{64})(?: (\d{1,20})\n)?", content):
        return Note(found[1].decode(), int(found[2]) if found[2] else None)
    raise DamagedNoteError(
        f"{note_of(path)}: is damaged, so {path} can't be checked; run {advised('verify --repair')}, "
        "then the same command again"
    )


def noted(path: Path) -> str | None:
    """Return the digest noted of a file; None when there is none. Raises DamagedNoteError."""
    found = read_note(path)
    return found.digest if found else None


def noted_in(folder: Path) -> list[Path]:
    """Return the files, there or not, whose digests are noted in a folder."""
    return sorted(folder / path.name for path in (folder / NOTES).glob("[!.]*"))


def all_noted(folder: Path) -> list[Path]:
    """Return the same for a folder and the folders in it."""
    return [path for notes in folder.glob(f"*/{NOTES}") for path in noted_in(notes.parent)] + noted_in(folder)

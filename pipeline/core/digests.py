"""SHA-256 digests of files.

A digest is recorded when a stage ends, and compared when a stage opens the file. The digest of NAME is noted in
`.digests/NAME` beside it. The note is removed before its file is rewritten or set aside, so it always describes the
file that is there. A folder of many files, such as recordings, has one digest. A note also holds the modification time
of its file, which a copy of the work folder may lose (pipeline/workflow/times.py).
"""

import contextlib
import errno
import functools
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.core.errors import UserError, command_advice
from pipeline.core.files import NOTES, WRITTEN_FILES, note_path, replace_file


@contextlib.contextmanager
def recording_digests() -> Iterator[None]:
    """Note the digests of all files that the block writes, if it ends without an error."""
    WRITTEN_FILES.clear()
    yield
    for path in WRITTEN_FILES:
        if path.exists():
            write_note(path)
    WRITTEN_FILES.clear()


def write_note(path: Path) -> None:
    """Write the note of a file or folder atomically.

    Raises:
        UserError: The note cannot be written.
    """
    changed_ns = path.stat().st_mtime_ns
    with replace_file(note_path(path)) as file:
        file.write(f"{digest_of(path)} {changed_ns}\n")


def digest_of(path: Path) -> str:
    """Return the digest of a file, or of the names and contents of all files in a folder.

    Raises:
        OSError: The file does not exist or cannot be read.
    """
    if not path.is_dir():
        return sha256_file(path)
    files = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sha256_json({str(file.relative_to(path)): sha256_file(file) for file in files})


class DamagedNoteError(UserError):
    """A note without a valid digest, so nothing proves that its file is what was written."""


@dataclass(frozen=True)
class Note:
    """The recorded digest of a file.

    Attributes:
        digest: SHA-256, hexadecimal.
        changed_ns: Modification time of the file when it was hashed, ns; None in notes of earlier versions.
    """

    digest: str
    changed_ns: int | None


def read_note(path: Path) -> Note | None:
    """Return the recorded digest and time of a file; None if it has no note.

    Raises:
        DamagedNoteError: The note is empty, cut or altered.
    """
    try:
        content = note_path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if found := re.fullmatch(rb"([0-9a-f]{64})(?: (\d{1,20})\n)?", content):
        return Note(found[1].decode(), int(found[2]) if found[2] else None)
    raise DamagedNoteError(
        f"{note_path(path)}: is damaged, so {path} can't be checked; run {command_advice('verify --repair')}, "
        "then the same command again"
    )


def noted_digest(path: Path) -> str | None:
    """Return the recorded digest of a file; None if there is none.

    Raises:
        DamagedNoteError: The note is empty, cut or altered.
    """
    found = read_note(path)
    return found.digest if found else None


def noted_files(folder: Path) -> list[Path]:
    """Return the files that have a note in this folder, whether they exist or not."""
    return sorted(folder / path.name for path in (folder / NOTES).glob("[!.]*"))


def all_noted_files(folder: Path) -> list[Path]:
    """Return the noted files of a folder and of its direct subfolders."""
    return [path for notes in folder.glob(f"*/{NOTES}") for path in noted_files(notes.parent)] + noted_files(folder)


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        OSError: The file cannot be read, or ended early, as a faulty disk may cause.
    """
    with open(path, "rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
        if (read := handle.tell()) != (size := os.fstat(handle.fileno()).st_size):
            raise OSError(errno.EIO, f"only {read} of {size} bytes could be read", str(path))
    return digest


def sha256_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def require_digest(path: Path, expected: str | None, otherwise: str) -> None:
    """Check `path` against an `expected` SHA-256, unless it is None; `otherwise` is the remedy.

    Raises:
        UserError: The digest differs.
    """
    if expected is not None and (found := sha256_file(path)) != expected:
        raise UserError(f"{path}: sha256 is {found}, expected {expected}; {otherwise}")


LARGEST = 1 << 28
"""Size limit in bytes of files that are hashed when opened; about 0.25 s. `verify` hashes larger ones."""
OWN_DIGEST = (".safetensors",)
checked_files: set[str] | None = None
"""Paths that the current stage opened; None outside of a stage."""


@contextlib.contextmanager
def checking_inputs() -> Iterator[None]:
    """Compare each file that the block opens for reading with its recorded digest, once.

    A file that a disk altered raises UserError where it is opened, instead of changing a result. Tensor files hold
    their own digest and are skipped. An audit hook also covers files that libraries open.
    """
    global checked_files
    install_audit_hook()
    checked_files = set()
    try:
        yield
    finally:
        checked_files = None


@functools.cache
def install_audit_hook() -> None:
    """Register the audit hook, which cannot be removed."""
    sys.addaudithook(on_event)


def on_event(event: str, arguments: tuple[Any, ...]) -> None:
    """Check a file that is opened for reading; the audit hook of `event` "open" with path, mode and flags.

    Raises:
        UserError: The content is not what was recorded.
    """
    if event == "open" and isinstance(arguments[0], str | Path) and not arguments[2] & os.O_ACCMODE:
        check_input(os.path.abspath(arguments[0]))


def check_input(name: str) -> None:
    """Compare a file with its note.

    Raises:
        UserError: The content is not what was recorded.
    """
    if checked_files is None or name in checked_files or name.endswith(OWN_DIGEST) or "/.digests/" in name:
        return
    checked_files.add(name)
    path = Path(name)
    digest = noted_digest(path)
    if digest is None or not path.is_file() or path.stat().st_size > LARGEST or sha256_file(path) == digest:
        return
    if noted_digest(path) == digest:  # no other process has rewritten it
        checked_files.remove(name)  # opening it again raises the error again
        raise UserError(
            f"{path}: is damaged, its SHA-256 differs from the recorded one; run {command_advice('verify --repair')}, "
            f"or remove {note_path(path)} if you changed the file yourself, then run the same command again"
        )

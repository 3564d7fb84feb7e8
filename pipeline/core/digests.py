"""SHA-256 of every file that a stage made, noted when it ended: in `.digests/NAME` beside NAME.

A note is removed before its file is written anew or set aside, so one that is there speaks for what is there. Of a
folder of many files, such as recordings, one digest of all is noted.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.core.files import MADE, note_of, writing
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
    """A note that can't be written is left out: the file itself is whole, and is good without."""
    with contextlib.suppress(UserError), writing(path):
        note_of(path).parent.mkdir(exist_ok=True)
        note_of(path).write_text(digest_of(path))


def digest_of(path: Path) -> str:
    """Of a file, or of the names and contents of all files in a folder.

    Raises:
        OSError: it is not there, or can't be read.
    """
    if not path.is_dir():
        return sha256_file(path)
    files = sorted(Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sha256_json({str(file.relative_to(path)): sha256_file(file) for file in files})


def noted(path: Path) -> str | None:
    """The digest that is noted of a file; None when there is none, or half of one, which a crash left."""
    try:
        found = note_of(path).read_text()
    except FileNotFoundError:
        return None
    return found if re.fullmatch("[0-9a-f]{64}", found) else None

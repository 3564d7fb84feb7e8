"""What a stage reads is what another stage wrote: compared with its noted digest when it is opened.

So a file that a disk has altered is an error, not another result. Files of tensors hold a digest of their own; the
largest are left to `verify`, which need not hurry.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.core.advice import advised
from pipeline.core.digests import noted
from pipeline.core.errors import UserError
from pipeline.core.files import note_of
from pipeline.core.sha256 import sha256_file

LARGEST = 1 << 28
"""Bytes: a quarter of a second."""
OWN_DIGEST = (".safetensors",)
looked_at: set[str] | None = None
"""Paths, while files are looked at."""


@contextlib.contextmanager
def looking() -> Iterator[None]:
    """Look at each file that is opened to be read while the block runs, once. What opens it raises UserError."""
    global looked_at
    hook()
    looked_at = set()
    try:
        yield
    finally:
        looked_at = None


@cache
def hook() -> None:
    """Have `on_event` told of every opening; that can't be undone."""
    sys.addaudithook(on_event)


def on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str | Path) and not arguments[2] & os.O_ACCMODE:
        look_at(os.path.abspath(arguments[0]))


def look_at(name: str) -> None:
    """Raises UserError when the content of a file is not what was noted of it."""
    if looked_at is None or name in looked_at or name.endswith(OWN_DIGEST) or "/.digests/" in name:
        return
    looked_at.add(name)
    path = Path(name)
    digest = noted(path)
    if digest is None or not path.is_file() or path.stat().st_size > LARGEST or sha256_file(path) == digest:
        return
    if noted(path) == digest:  # nobody has written it anew meanwhile
        looked_at.remove(name)  # who goes on in spite of this and opens it again is told again
        raise UserError(
            f"{path}: is damaged, its SHA-256 is not what was noted; run {advised('verify --repair')}, "
            f"or remove {note_of(path)} if you changed it yourself, then run the same command again"
        )

"""SHA-256 of files and of values."""

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from pipeline.core.errors import UserError


def sha256_file(path: Path) -> str:
    """Raises OSError when not all of the file could be read, as a disk at fault may end it early."""
    with open(path, "rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
        if (read := handle.tell()) != (size := os.fstat(handle.fileno()).st_size):
            raise OSError(errno.EIO, f"only {read} of {size} bytes could be read", str(path))
    return digest


def sha256_json(value: Any) -> str:
    """Digest of a JSON value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def require_digest(path: Path, expected: str | None, otherwise: str) -> None:
    """Raises UserError where a file has not the SHA-256 that is `expected`, if one is: what to do then."""
    if expected is not None and (found := sha256_file(path)) != expected:
        raise UserError(f"{path}: sha256 is {found}, expected {expected}; {otherwise}")

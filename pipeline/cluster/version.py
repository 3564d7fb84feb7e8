"""Which code a job was submitted with."""

import hashlib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
PROJECT = PACKAGE.parent


def code_digest() -> str:
    """SHA-256 over the names and contents of the package's files, Python and tables."""
    digest = hashlib.sha256()
    for path in sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".txt", ".csv")):
        digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()

"""Which code a job was submitted with."""

from pathlib import Path

from pipeline.core.digests import sha256_file, sha256_json

PACKAGE = Path(__file__).resolve().parents[1]
PROJECT = PACKAGE.parent


def code_digest() -> str:
    """SHA-256 over the names and contents of the package's files, Python and tables."""
    found = (path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".txt", ".csv"))
    return sha256_json({str(path.relative_to(PACKAGE)): sha256_file(path) for path in found})

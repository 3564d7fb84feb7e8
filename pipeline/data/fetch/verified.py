"""Which files were verified, noted beside the downloads: 60 GB are hashed once, and not before every use.

A note, `<downloads>/.verified/<checksum>.json`, counts as long as the file has the size and time of change it had then.
"""

import logging
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.core.records.preparation import VerifiedFile
from pipeline.core.records.record import read_note
from pipeline.data.dataset import Source
from pipeline.data.fetch.transfer import mismatch

log = logging.getLogger(__name__)


def fault_of(path: Path, source: Source, downloads: Path) -> str | None:
    """What is wrong with a local file, or None when its checksum is right; it is hashed if no note speaks for it."""
    if (fault := wrong_size(path, source)) or is_noted(path, source, downloads):
        return fault
    fault = mismatch(path, source.known_hash)
    if fault is None:
        note(path, source, downloads)
    return fault


def wrong_size(path: Path, source: Source) -> str | None:
    found = path.stat().st_size
    return f"{found} bytes, expected {source.bytes}" if source.bytes not in (None, found) else None


def is_noted(path: Path, source: Source, downloads: Path) -> bool:
    """Whether the file was verified and has not changed since."""
    return read_note(VerifiedFile, note_path(source, downloads)) == facts(path)


def note(path: Path, source: Source, downloads: Path) -> None:
    """Note that the file was verified."""
    try:
        facts(path).write(note_path(source, downloads))
    except UserError as error:
        log.info("%s will be hashed again next time: %s", path, error)


def note_path(source: Source, downloads: Path) -> Path:
    return downloads / ".verified" / f"{source.known_hash.replace(':', '-')}.json"


def facts(path: Path) -> VerifiedFile:
    found = path.stat()
    return VerifiedFile(path=str(path.resolve()), bytes=found.st_size, changed_ns=found.st_mtime_ns)

"""Read named members of tar and zip archives, as streams: nothing lands anywhere but in the files given here."""

import contextlib
import gzip
import logging
import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from pipeline.core.disk import require_space
from pipeline.core.errors import UserError

log = logging.getLogger(__name__)

Member = tuple[str, int, IO[bytes]]
"""Name, size in bytes, content; to be read before the next one is asked for."""
DAMAGE = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


@contextlib.contextmanager
def undamaged(path: Path, *more: type[Exception]) -> Iterator[None]:
    """Within it `path` is read. Raises UserError where that shows it to be damaged, also by errors of types `more`."""
    signs: tuple[type[Exception], ...] = (*DAMAGE, *more)
    try:
        yield
    except signs as error:
        raise UserError(f"{path}: damaged ({error}); remove it and fetch it again") from error


def unpack(archive: Path, name: str, wanted: set[str], folder: Path) -> dict[tuple[str, str], Path]:
    """Copy members of an archive to numbered files in `folder`, in one pass; returns (name, member) -> path.

    Raises:
        UserError: the archive is damaged, has not all members wanted, has one that escapes its folder, or the disk is
            too small.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[tuple[str, str], Path] = {}
    copied = 0
    with undamaged(archive):
        for member, size, content in members(archive):
            if member in wanted:
                require_space(folder, size, f"{member} of {name}")
                found[name, member] = folder / f"{copied}"  # a member may come twice
                copied += 1
                log.info("%s: unpacking %s, %.1f MB", name, member, size / 1e6)
                with open(found[name, member], "wb") as output:
                    shutil.copyfileobj(content, output, 1 << 20)
            if len(found) == len(wanted):
                break
    if missing := wanted - {member for _, member in found}:
        raise UserError(
            f"{archive}: has no member {', '.join(sorted(missing))}: the archive is damaged, or the dataset file "
            "names its members wrongly; fetch it again or correct them"
        )
    return found


def members(archive: Path) -> Iterator[Member]:
    """The regular files of an archive in order. Raises UserError at a name that leads out of the archive's folder."""
    for member, size, content in (zip_members if is_zip(archive) else tar_members)(archive):
        path = PurePosixPath(member.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise UserError(f"{archive}: its member {member!r} leads out of its folder; the archive is not used")
        yield member.removeprefix("./"), size, content


def is_zip(archive: Path) -> bool:
    with open(archive, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def tar_members(archive: Path) -> Iterator[Member]:
    with tarfile.open(archive, "r|*") as tar:
        for entry in tar:
            if entry.isfile() and (content := tar.extractfile(entry)):
                yield entry.name, entry.size, content


def zip_members(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as files:
        for entry in files.infolist():
            if entry.is_dir():
                continue
            try:
                content = files.open(entry)
            except (RuntimeError, NotImplementedError) as error:  # encrypted, or of an unknown compression
                raise UserError(f"{archive}: {error}; pack it anew as others can read it") from error
            with content:
                yield entry.filename, entry.file_size, content

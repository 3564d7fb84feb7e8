"""Members of tar and zip archives as streams, even if an archive is hostile.

Nothing is written here, so no archive can choose where its content lands. `tarfile.data_filter` would check names too,
but it needs Python 3.11.4 and extracts everything; corpora need a few members of large archives.
"""

import contextlib
import logging
import posixpath
import re
import shutil
import stat
import tarfile
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from pipeline.core.disk import require_space
from pipeline.core.errors import UserError
from pipeline.core.files import remove_orphans, temporary_sibling, write_errors
from pipeline.data.fetch.links import link_target, linked_names
from pipeline.data.fetch.untrusted import (
    LONGEST_HEADER,
    TAR_BLOCK,
    BoundedStream,
    UntrustedStream,
    decompressed,
    opened,
    parsing,
    require_modest_size,
)

log = logging.getLogger(__name__)

Member = tuple[str, int, IO[bytes]]
"""Name, size in bytes, and content; read the content before the next member."""
Wanted = Callable[[str], bool]
READ_FORMATS = "zip and tar archives are read, tar also if compressed by gzip, bzip2 or xz"
MOST_MEMBERS = 10_000_000
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
IN_MEMORY = 1 << 26


@contextlib.contextmanager
def folder_of_copies(corpus: Path) -> Iterator[Path]:
    """Yield a folder of this process for copies of members in a `corpus`, and remove it at the end of the block.

    It does not exist yet. Folders that killed processes left are removed at the start.
    """
    folder = temporary_sibling(corpus / "raw/unpacked")
    remove_orphans(folder.parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unpack(archive: Path, name: str, wanted: set[str], folder: Path) -> dict[tuple[str, str], Path]:
    """Copy the members of an archive that a dataset names.

    Args:
        archive: Fetched archive.
        name: Its name in the dataset file.
        wanted: Names of the members in the dataset file.
        folder: Folder of the copies; created if needed.

    Returns:
        Path of each copy by archive and member.

    Raises:
        UserError: The archive is damaged, lacks a member, has one outside its folder, or the disk is too small.
    """
    spelled = {member_name(member, archive): member for member in wanted}
    copies = copy_members(archive, name, spelled.__contains__, folder)
    if missing := wanted - {spelled[member] for member in copies}:
        raise UserError(
            f"{archive}: has no member {', '.join(sorted(missing))}; correct the names in the dataset file, or fetch "
            "the archive again"
        )
    return {(name, spelled[member]): path for member, path in copies.items()}


def copy_members(archive: Path, name: str, wanted: Wanted, folder: Path, once: bool = False) -> dict[str, Path]:
    """Copy the members that are `wanted` to numbered files in one pass; see `unpack`, and `members` for `once`.

    Of several members of one name the last one counts, as for `tar -x`. So the archive is read to its end.

    Returns:
        Path of each copy by member, in the order of the archive.

    Raises:
        UserError: The archive is damaged, has a member outside its folder, or the disk is too small.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log.info("%s: unpacking", name)
    copies: dict[str, Path] = {}
    for number, (member, size, content) in enumerate(members(archive, wanted, once)):
        if member in copies:
            warn_of_repeat(name, member)
        require_space(folder, size, f"{member} of {name}")
        path = copies.pop(member, folder / f"{number}")
        with write_errors(path), open(path, "wb") as output:
            shutil.copyfileobj(content, output, 1 << 20)
        copies[member] = path
    return copies


def members(archive: Path, wanted: Wanted, once: bool = False) -> Iterator[Member]:
    """Yield the wanted files of an archive in its order, then the wanted links to its files.

    Args:
        archive: A zip archive, or a tar archive, possibly compressed by gzip, bzip2 or xz.
        wanted: Predicate of the names to read.
        once: Read a file under one of its wanted names only, and log the others.

    Raises:
        UserError: The archive is damaged, or the name of any member points outside the archive's folder.
    """
    read: set[int] | None = set() if once else None
    yield from (zip_members if is_zip(archive) else tar_members)(archive, wanted, read)


def warn_of_repeat(archive: str, member: str) -> None:
    """Log that the `archive` of this name has several of one `member`."""
    log.warning("%s: has %s more than once; the last one counts", archive, member)


def is_zip(archive: Path) -> bool:
    """Return whether an archive is a zip file."""
    with opened(archive) as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def member_name(name: str, archive: Path) -> str:
    """Return the `name` of a member of an `archive` in the form that dataset files use.

    Windows tools separate folders by backslashes; macOS decomposes accents. The name of a folder is empty.

    Raises:
        UserError: The name points outside the archive's folder.
    """
    path = unicodedata.normalize("NFC", name).replace("\\", "/")
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise UserError(f"{archive}: member {name!r} points outside its folder; fetch the archive from another source")
    return "" if path.endswith("/") or not parts.parts else str(parts)


def is_metadata(name: str) -> bool:
    """Return whether macOS packed this file beside the data.

    An AppleDouble file (`._NAME`) holds attributes of another file. Names of folder icons have a control character,
    unlike files of a corpus.
    """
    parts = name.split("/")
    return parts[-1].startswith("._") or parts[0] == "__MACOSX" or bool(CONTROL.search(name))


def is_repeated(name: str, number: int, read: set[int] | None) -> bool:
    """Return whether file `number` was `read` under another `name`, and log it; None lets files repeat."""
    if read is not None and number in read:
        log.warning("%s is a link to a file that was read under another name; it is left out", name)
        return True
    if read is not None:
        read.add(number)
    return False


def tar_members(archive: Path, wanted: Wanted, read: set[int] | None) -> Iterator[Member]:
    """Yield `wanted` files of a tar `archive` in one pass, then wanted links in a second pass; see `members`."""
    holders: dict[str, int] = {}
    hard: dict[str, int] = {}  # wanted links, each with the number of the file behind it
    symbolic: dict[str, str] = {}
    for number, entry, content in tar_entries(archive):
        name = member_name(entry.name, archive)
        if not name or is_metadata(name):
            continue
        if entry.isreg():
            holders[name] = number
            hard.pop(name, None)  # this file replaces the link
            if wanted(name) and not is_repeated(name, number, read):
                yield name, entry.size, UntrustedStream(content, archive)
        elif entry.islnk() and (holder := holders.get(posixpath.normpath(link_target("", entry.linkname)))) is not None:
            holders[name] = holder  # of several members with this name, the latest before the link
            if wanted(name):
                hard[name] = holder
        elif entry.islnk():
            symbolic[name] = link_target("", entry.linkname)
        elif entry.issym():
            symbolic[name] = link_target(posixpath.dirname(name), entry.linkname)
    for name, end in linked_names(archive, symbolic, holders):
        if wanted(name):
            hard[name] = holders[end]
    links: dict[int, list[str]] = {}
    for name, holder in hard.items():
        if not is_repeated(name, holder, read):
            links.setdefault(holder, []).append(name)
    if links:
        yield from linked_members(archive, links)


def linked_members(archive: Path, links: dict[int, list[str]]) -> Iterator[Member]:
    """Read a tar `archive` again and yield entries under the names of `links` to them, by number; empties `links`."""
    for number, entry, content in tar_entries(archive):
        names = links.pop(number, [])
        if len(names) == 1:
            yield names[0], entry.size, UntrustedStream(content, archive)
        elif names:
            require_space(Path(tempfile.gettempdir()), entry.size, f"files of {archive.name} that are linked")
            with tempfile.SpooledTemporaryFile(IN_MEMORY) as copy:
                shutil.copyfileobj(UntrustedStream(content, archive), copy, 1 << 20)
                for name in names:
                    copy.seek(0)
                    yield name, entry.size, copy
        if not links:
            break


def tar_entries(archive: Path) -> Iterator[tuple[int, tarfile.TarInfo, IO[bytes] | None]]:
    """Yield number and header of each entry, and the content of a regular file.

    Raises:
        UserError: The archive is damaged, has too many members, or has sparse files too large for its size.
    """
    with opened(archive) as file, decompressed(file, archive) as stream:
        bounded = BoundedStream(stream)
        with parsing(archive, f"remove it and fetch it again; {READ_FORMATS}"):
            tar = tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r|", bufsize=TAR_BLOCK)  # noqa: SIM115 - no file
        sparse = 0  # bytes, mostly zeros that the archive does not hold
        for number in range(MOST_MEMBERS):
            with parsing(archive):
                entry = _next_header(tar, bounded)
                if entry is None:
                    return
                if entry.issparse():
                    sparse += entry.size
                    require_modest_size(str(archive), sparse, archive.stat().st_size)
                content = tar.extractfile(entry) if entry.isreg() else None
            yield number, entry, content
        raise UserError(f"{archive}: has more than {MOST_MEMBERS:,} members; is it the right file?")


def _next_header(tar: tarfile.TarFile, bounded: BoundedStream) -> tarfile.TarInfo | None:
    """Read the next header; None at the end of the archive."""
    bounded.limit = tar.offset + LONGEST_HEADER + TAR_BLOCK
    entry = tar.next()
    bounded.limit = None
    tar.members.clear()  # type: ignore[attr-defined]  # tarfile keeps all headers
    if entry is None and any(bounded.record_at(tar.offset)):
        raise tarfile.ReadError("bad header")  # tarfile takes it for the end
    if entry is not None and not 0 <= entry.size < 1 << 63:
        raise tarfile.ReadError("impossible size")
    return entry


def zip_members(archive: Path, wanted: Wanted, read: set[int] | None) -> Iterator[Member]:
    """Yield `wanted` files of a zip `archive`, then wanted symbolic links to its files; see `members`."""
    with opened(archive) as file:
        with parsing(archive):
            files = zipfile.ZipFile(file)
            entries = [(member_name(entry.filename, archive), entry) for entry in files.infolist()]
        entries = [(name, entry) for name, entry in entries if name and not is_metadata(name)]
        regular = {name: number for number, (name, entry) in enumerate(entries) if not is_symbolic(entry)}
        for number, (name, entry) in enumerate(entries):
            if not is_symbolic(entry) and wanted(name) and not is_repeated(name, number, read):
                yield zip_member(archive, files, name, entry)
        symbolic = {name: entry for name, entry in entries if is_symbolic(entry)}
        targets = {name: zip_target(archive, files, name, entry) for name, entry in symbolic.items()}
        for name, end in linked_names(archive, targets, regular):
            if wanted(name) and not is_repeated(name, regular[end], read):
                yield zip_member(archive, files, name, entries[regular[end]][1])


def is_symbolic(entry: zipfile.ZipInfo) -> bool:
    """Return whether a zip entry is a symbolic link."""
    return stat.S_ISLNK(entry.external_attr >> 16)


def zip_member(archive: Path, files: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo) -> Member:
    """Return the `entry` of `files`, the open `archive`, as a member of this `name`.

    Raises:
        UserError: The entry can't be read, e.g. encrypted ones, or is too large for its compressed size.
    """
    with parsing(archive, "fetch it again, or repack it in a common format"):
        require_modest_size(f"{archive}: {name}", entry.file_size, entry.compress_size)
        return name, entry.file_size, UntrustedStream(files.open(entry), archive)


def zip_target(archive: Path, files: zipfile.ZipFile, name: str, entry: zipfile.ZipInfo) -> str:
    """Return the target of a symbolic link; see `zip_member`."""
    content = zip_member(archive, files, name, entry)[2]
    return link_target(posixpath.dirname(name), content.read(TAR_BLOCK).decode(errors="replace"))

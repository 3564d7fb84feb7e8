"""Files of a user, which are never overwritten, and folders that are written atomically."""

import errno
import filecmp
import os
import re
import shlex
import tempfile
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.core.digests import sha256_json
from pipeline.core.errors import UserError, one_line
from pipeline.core.files import register_output, write_errors

ANOTHER_PLACE = "name another place"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
LONGEST_NAME = 200
"""Bytes; file systems allow 255, of which unfinished downloads and notes need some."""

COMPRESSED = re.compile(rb"\x1f\x8b|BZh\d(1AY|\x17rE)|\xfd7zXZ|PK\x03\x04|\x28\xb5\x2f\xfd")
"""Beginnings of files of gzip, bzip2, xz, zip and zstandard."""

UNWRITABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, and bytes that are not UTF-8."""


def lines_of(path: Path) -> Iterator[str]:
    """Yield lines with their ends, without a byte order mark.

    Raises:
        UserError: The file cannot be read, is compressed or is not UTF-8.
    """
    try:
        with open(path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                if number == 1 and COMPRESSED.match(line):
                    raise UserError(f"{path}: is compressed or an archive; unpack it first")
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise UserError(not_text(path, number, line)) from error
                yield text
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror or error}") from error


def refuse_pipe(path: Path) -> None:
    """Refuse a pipe or device before it is read: it may never end.

    Raises:
        UserError: It is one.
    """
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise UserError(f"{path}: is a pipe or device, which can't be read again; write its content to a file")


def checked_path(path: Path) -> str:
    """Return the path of a file in the project, the working folder, relative to it; of another one, the absolute path.

    Raises:
        UserError: A dataset file cannot contain its name, or it is a pipe or device.
    """
    refuse_pipe(path)
    found, root = path.resolve(), Path().resolve()
    place = str(found.relative_to(root) if found.is_relative_to(root) else found)
    if not path.name.isprintable() or UNWRITABLE.search(place):
        raise UserError(f"{one_line(place)}: a dataset file can't have this name; use printable characters")
    return place


def source_name(dataset: str, part: str, path: Path) -> str:
    """Name the file `path` of a `part` of a `dataset`, such as `train.en`, among those of all datasets.

    Returns:
        A name of at most `LONGEST_NAME` bytes; a digest replaces a long file name.
    """
    plain = f"{dataset}.{part}.{path.name}"
    if len(os.fsencode(plain)) <= LONGEST_NAME:
        return plain
    return f"{dataset}.{part}.{sha256_json(str(path.resolve()))[:16]}{path.suffix[-20:]}"


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a temporary file, and then move it to `path`, unless an equal file exists there.

    Raises:
        UserError: A different file exists there, which is kept.
    """
    new = path.with_name(f".{path.name}.new")
    try:
        yield new
        if not path.exists():
            new.replace(path)
            register_output(path)
        elif not filecmp.cmp(new, path, shallow=False):
            raise UserError(f"{path}: exists with other contents; move it away, or choose another name")
    finally:
        new.unlink(missing_ok=True)


def not_text(path: Path, number: int, line: bytes) -> str:
    """Return the message about a file `path` whose `line` of a `number` is not UTF-8, with what to do."""
    fault = f"{path}: line {number}: not UTF-8; convert it"
    to = f"-t UTF-8 {shlex.quote(str(path))} > NEW`"
    if not path.is_file():  # a pipe
        return f"{fault} first"
    if number == 1 and line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return f"{fault}: `iconv -f UTF-16 {to}"
    return f"{fault} from its encoding, such as `iconv -f WINDOWS-1252 {to} for Western European text"


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill, and then move it to `folder`, which is absent or empty.

    Raises:
        UserError: It cannot be written; nothing is left behind.
    """
    place = folder.resolve()
    with write_errors(folder, ANOTHER_PLACE):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.")
    with beside as above:
        new = Path(above) / place.name
        new.mkdir()
        with filling(folder):
            yield new
        with write_errors(folder, ANOTHER_PLACE):
            os.replace(new, place)


@contextmanager
def filling(path: Path) -> Iterator[None]:
    """Turn errors of writing a file into UserError; a missing file that the block reads is no such error."""
    try:
        yield
    except FileNotFoundError:
        raise
    except UserError as error:  # its remedy for a full disk would be another `work:`
        if not isinstance(full := error.__cause__, OSError) or full.errno not in FULL:
            raise
        with write_errors(path, ANOTHER_PLACE):
            raise full from None
    except OSError:
        with write_errors(path, ANOTHER_PLACE):
            raise

"""Read untrusted files: any exception of a parser becomes one clear error.

Parsers raise more than they document: struct.error, IndexError, LookupError, SyntaxError, … A list of these would
never be complete. So `parsing` reports every exception as damage, except those of the disk that holds the file.
"""

import bz2
import contextlib
import gzip
import io
import lzma
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from pipeline.core.errors import UnreadableError, UserError

LONGEST_LINE = 1 << 26
"""Most bytes of a line; a compressed file of a megabyte can hold a line of a gigabyte."""
FREE_LINES, SHORTEST_MEAN = 10_000_000, 4
"""Lines that any file may have, and the bytes that the lines of a longer one have on average, with their ends.

A compressed file of a megabyte can hold a hundred million blank lines. Text with a sentence on every tenth line passes.
"""
BLOCK = 1 << 18
"""Bytes of a block; splitting blocks into lines is several times faster than reading lines."""
MOST_EXPANSION = 100
"""Most bytes that a compressed byte may become on average; text becomes 2 to 10."""
FREE_TEXT, FREE_ARCHIVE = 1 << 23, 1 << 25
"""Bytes that any compressed text and archive may become."""
OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
LONGEST_HEADER = 1 << 14
"""Most bytes between two tar members (names, extended attributes); tarfile parses more in quadratic time."""
TAR_BLOCK = 1 << 14
"""Bytes that tarfile reads at once."""


@contextlib.contextmanager
def parsing(path: Path, remedy: str = "remove it and fetch it again") -> Iterator[None]:
    """Report any exception of a parser in the block as damage.

    Keep the block to calls of the parser, since errors of other code would be reported as damage too.

    Args:
        path: The parsed file, opened by `opened`.
        remedy: Remedy for damage, for the message.

    Raises:
        UserError: The file is damaged.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        fault = str(error) or type(error).__name__
        raise UserError(f"{path}: damaged ({fault}); {remedy}") from error


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Yield an open file whose disk errors stay distinct from damage.

    Raises:
        UnreadableError: The system can't read the file.
        FileNotFoundError: There is no such file.
    """
    with DiskFile(path) as raw, io.BufferedReader(raw, 1 << 18) as file:
        yield file


class DiskFile(io.FileIO):
    """A file whose read errors are UserErrors, since libraries take an OSError for another format."""

    def readinto(self, buffer: Any) -> int | None:
        """Return the number of bytes read into a buffer.

        Raises:
            UnreadableError: The system can't read the file.
        """
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise UnreadableError(
                f"{self.name}: can't be read: {error.strerror}; nothing was removed: check the disk, then run the same "
                "command again"
            ) from error


@contextlib.contextmanager
def decompressed(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Yield `file`, open at its start, decompressed if it begins as gzip, bzip2 or xz; `path` is for messages."""
    start = file.read(6)
    file.seek(0)
    opener = next((opener for magic, opener in OPENERS.items() if start.startswith(magic)), None)
    if opener is None:
        yield file
    else:
        with parsing(path):
            stream = opener(file)
        with contextlib.closing(stream):
            yield cast("IO[bytes]", ExpandedStream(stream, str(path), path.stat().st_size, FREE_ARCHIVE))


def gunzipped(stream: IO[bytes], name: str, path: Path, size: int) -> IO[bytes]:
    """Return the `stream` of a file of `size` bytes, decompressed if its `name` ends in `.gz`; errors name `path`."""
    if not name.lower().endswith(".gz"):
        return stream
    where = str(path) if path.name == name else f"{path}: {name}"
    return cast("IO[bytes]", ExpandedStream(gzip.GzipFile(fileobj=stream), where, size, FREE_TEXT))


class ExpandedStream:
    """A decompressed stream that refuses to expand a small file to gigabytes.

    Attributes:
        name: Name of the file, for the message.
        compressed: Bytes of the whole file, so that its beginning may be more repetitive than the rest.
        free: Size that is allowed in any case.
    """

    def __init__(self, stream: Any, name: str, compressed: int, free: int):
        self.stream = stream
        self.name, self.compressed, self.free = name, compressed, free
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes; none at the end.

        Raises:
            UserError: The content is too large for the size of the file.
        """
        block = self.stream.read(size)
        self.count += len(block)
        require_modest_size(self.name, self.count, self.compressed, self.free)
        return block


def require_modest_size(name: str, size: int, compressed: int, free: int = FREE_ARCHIVE) -> None:
    """Check the `size` of the content of `name` against its `compressed` size; `free` bytes are always allowed.

    Raises:
        UserError: The content is too large.
    """
    if size > free and size > MOST_EXPANSION * compressed:
        raise UserError(
            f"{name}: its {compressed:,} bytes expand to {size:,} or more, beyond the limit of {MOST_EXPANSION} times; "
            "if you trust it, decompress it yourself and name the result in the dataset file"
        )


class UntrustedStream(io.BufferedReader):
    """Content of an archive member that raises UserError for damage."""

    def __init__(self, content: Any, path: Path):
        super().__init__(RawContent(content, path), 1 << 17)


class RawContent(io.RawIOBase):
    """The unbuffered side of `UntrustedStream`."""

    def __init__(self, content: Any, path: Path):
        self.content, self.path = content, path

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Return the number of bytes read into a buffer.

        Raises:
            UserError: The content is damaged.
        """
        with parsing(self.path):
            block = self.content.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


def lines_in(stream: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield the lines of a `stream` of the file `path` without their ends.

    Raises:
        UserError: The stream is damaged, a line is longer than any text, or too many lines are blank.
    """
    begun: list[bytes] = []
    size = lines = 0
    block = b"\n"
    with parsing(path):
        while block:
            block = stream.read(BLOCK)
            first, *others = block.split(b"\n")
            size, lines = size + len(block), lines + len(others)
            if lines > FREE_LINES and size < SHORTEST_MEAN * lines:
                raise UserError(f"{path}: has {lines:,} lines or more, nearly all of them blank; is it the right file?")
            begun.append(first)
            if sum(map(len, begun)) > LONGEST_LINE:
                raise UserError(f"{path}: has a line of more than {LONGEST_LINE} bytes; is it the right file?")
            if others:
                yield b"".join(begun)
                begun = [others.pop()]
                yield from others
        if last := b"".join(begun):
            yield last


def decoded_lines(stream: IO[bytes], path: Path) -> Iterator[str]:
    """Yield the lines of UTF-8 text in a `stream` of the file `path` without their ends and byte order marks.

    Raises:
        UserError: The stream is damaged or not UTF-8, or its lines are unlike any text.
    """
    with parsing(path):
        yield from (line.decode("utf-8-sig") for line in lines_in(stream, path))


def read_all(stream: IO[bytes], path: Path) -> bytes:
    """Return the content of a `stream` of the file `path`, read in blocks so that a bomb is noticed in time.

    Raises:
        UserError: The stream is damaged, or expands to too much.
    """
    with parsing(path):
        return b"".join(iter(partial(stream.read, BLOCK), b""))


class BoundedStream:
    """A stream that stops the endless reads of tarfile at headers with false sizes."""

    def __init__(self, stream: IO[bytes]):
        self.stream = stream
        self.limit: int | None = LONGEST_HEADER + TAR_BLOCK
        """Position up to which reads are allowed; None = any."""
        self.position = 0
        self.latest = b""
        """Bytes of the latest read, up to the position."""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end of the stream.

        Raises:
            EOFError: The stream ends within a member, or the limit is passed.
        """
        if self.position and not self.latest:
            raise EOFError("ends within a member")
        if self.limit is not None and self.position > self.limit:
            raise EOFError(f"has a header of more than {LONGEST_HEADER} bytes")
        self.latest = self.stream.read(size)
        self.position += len(self.latest)
        return self.latest

    def record_at(self, offset: int) -> bytes:
        """Return the record of 512 bytes at an offset within the latest read, else empty."""
        start = max(0, offset - (self.position - len(self.latest)))
        return self.latest[start : start + tarfile.BLOCKSIZE]

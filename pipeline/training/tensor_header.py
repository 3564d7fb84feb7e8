"""What a file of named tensors (tensor_file.py) says of itself, read without torch."""

from pathlib import Path
from typing import IO, Any

from pipeline.core.json_file import parse
from pipeline.core.retries import read_with_retries

FACTS = "reprise"  # a single entry: the order of several is not fixed, and equal content should give equal bytes


class DamagedFileError(Exception):
    """The file is absent or, as far as it was read, not what was written: cut off, altered, or of another kind."""


def read_facts(path: Path) -> dict[str, Any]:
    """The facts alone, `key` and `digest` among them, from the header.

    Raises:
        DamagedFileError: the file is absent, or its header is not ours.
        UserError: it can't be read, which says nothing of what it holds.
    """
    try:
        return facts_in(read_with_retries(path, length_of_head), path)
    except FileNotFoundError as error:
        raise DamagedFileError(f"{path}: no such file") from error


def length_of_head(handle: IO[bytes]) -> int:
    """Bytes up to the tensors: the length of the JSON header, as eight bytes, and the header."""
    return 8 + int.from_bytes(handle.read(8), "little")


def facts_in(content: bytes, path: Path) -> dict[str, Any]:
    """The facts in what `path` begins with. Raises DamagedFileError."""
    try:
        header = parse(content[8 : 8 + int.from_bytes(content[:8], "little")])
        facts = parse(header["__metadata__"][FACTS])
        return facts | {"key": facts["key"], "digest": facts["digest"]}
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path}: not a whole tensor file of ours ({error})") from error

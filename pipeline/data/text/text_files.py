"""Text as stages write it and users give it: UTF-8, a line feed at the end of each line and nowhere else."""

from collections.abc import Iterator
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.core.files import reading


def lines_of(path: Path, otherwise: str) -> Iterator[str]:
    """The lines without their ends. Raises UserError for a file that is not UTF-8, or is missing: what to do then."""
    try:  # a byte order mark is left out
        with reading(otherwise), open(path, encoding="utf-8-sig", newline="\n") as lines:
            yield from (line.removesuffix("\n") for line in lines)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8 ({error.reason}); save it as UTF-8") from error


def count_lines(path: Path, otherwise: str) -> int:
    """Raises UserError for a file that is missing: what to do then."""
    with reading(otherwise), open(path, "rb") as lines:
        return sum(1 for _ in lines)

"""Reading text that a user gives."""

from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import UserError


def lines_of(path: Path) -> Iterator[str]:
    """Lines with their ends, without the byte order mark that may come first.

    Raises:
        UserError: system or content does not let it be read.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as lines:
            yield from lines
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise not_text(str(path), error) from error


def not_text(name: str, error: UnicodeDecodeError) -> UserError:
    return UserError(f"{name}: not UTF-8 ({error.reason} at byte {error.start}); convert it first")

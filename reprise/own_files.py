"""Reading text that a user gives."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import UserError


@contextmanager
def reading(*paths: Path) -> Iterator[None]:
    """Within it `paths` are read as UTF-8. Raises UserError where system or content does not let them be."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{error.filename or paths[0]}: can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise not_text(" or ".join(map(str, paths)), error) from error


def lines_of(path: Path) -> Iterator[str]:
    """Lines with their ends, without the byte order mark that may come first. Raises UserError as `reading` does."""
    with reading(path), open(path, encoding="utf-8-sig", newline="\n") as lines:
        yield from lines


def not_text(name: str, error: UnicodeDecodeError) -> UserError:
    return UserError(f"{name}: not UTF-8 ({error.reason} at byte {error.start}); convert it first")

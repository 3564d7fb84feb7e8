"""Folders that are either whole or absent, as files are by `atomic_write`."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.core.files import writing

ANOTHER_PLACE = "name another place"


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, of the same name, to be filled; then it takes the place, which is free or empty.

    Raises:
        UserError: the system can't write it; nothing is left behind.
    """
    place = folder.resolve()
    with writing(folder, ANOTHER_PLACE):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.")
    with beside as above:
        new = Path(above) / place.name
        new.mkdir()
        with filling(folder):
            yield new
        with writing(folder, ANOTHER_PLACE):
            os.replace(new, place)


@contextmanager
def filling(path: Path) -> Iterator[None]:
    """Raises UserError where `path` can't be written to. What else is missing is no fault of it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError:
        with writing(path, ANOTHER_PLACE):
            raise

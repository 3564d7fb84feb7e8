"""Folders that are either whole or absent, as files are by `atomic_write`."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.files import writing


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, of the same name, to be filled; then it takes the place, which is free or empty.

    Raises:
        UserError: the system can't write it; nothing is left behind.
    """
    place = folder.resolve()
    with writing(folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.") as beside:
            new = Path(beside) / place.name
            new.mkdir()
            yield new
            os.replace(new, place)

"""`raw.done`: the record that the raw data of a corpus is complete, with the names of its files."""

import os
from pathlib import Path

from pipeline.core.artifacts import Raw
from pipeline.core.errors import UserError
from pipeline.core.files import MADE
from pipeline.core.layout import IN_CORPUS
from pipeline.core.records.preparation import RawFiles


def write_raw_mark(corpus: Path) -> None:
    """Write `raw.done` with the files that this stage made in the folder of a corpus.

    Raises:
        UserError: The file cannot be written.
    """
    folder = Path(os.path.abspath(corpus))
    files = sorted(str(path.relative_to(folder)) for path in MADE if path.is_relative_to(folder) and path.exists())
    RawFiles(files=files).write(corpus / IN_CORPUS[Raw])


def files_listed(mark: Path) -> set[Path]:
    """Return the files named in a `raw.done`; none if it is missing or holds no list."""
    try:
        return {mark.parent / name for name in RawFiles.read(mark).files}
    except UserError:
        return set()

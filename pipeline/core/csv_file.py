"""CSV files with a header, safe to open in a spreadsheet."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.files import atomic_write

if TYPE_CHECKING:
    from pandas import DataFrame


FORMULA = re.compile(r"'*[=+\-@\t].", re.DOTALL)
"""The start of a text that a spreadsheet would evaluate, after any apostrophes that were added before."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def as_text(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would evaluate; numbers stay as they are.

    A carriage return becomes a space, because many readers end a row there and the writer would not quote it.

    Returns:
        The text, or another kind of value unchanged.
    """
    if not isinstance(cell, str) or NUMBER.fullmatch(cell):
        return cell
    line = cell.replace("\r", " ")
    return f"'{line}" if FORMULA.match(line) else line


def from_text(cell: str) -> str:
    """Undo `as_text`, except for carriage returns."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def write_csv(
    path: Path,
    rows: "DataFrame | Sequence[dict[str, Any]]",
    columns: Sequence[str] | None = None,
    texts: Sequence[str] = (),
) -> None:
    """Write a table with a header.

    Args:
        path: The file to write.
        rows: One dictionary or data frame row per line.
        columns: Columns in order; None for all.
        texts: Columns with text of models or data, which `as_text` protects.
    """
    from pandas import DataFrame  # takes 0.4 s to import

    frame = DataFrame(rows, columns=None if columns is None else list(columns), dtype=object)
    for name in frame.columns.intersection(list(texts)):
        frame[name] = frame[name].map(as_text)
    with atomic_write(path) as handle:
        frame.to_csv(handle, index=False, lineterminator="\n")

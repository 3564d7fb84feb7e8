"""JSON files of one value each, and CSV files with a header that are safe to open in a spreadsheet."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.errors import UserError, shown
from pipeline.core.files import atomic_write

if TYPE_CHECKING:
    from pandas import DataFrame


def write_json(path: Path, value: Any) -> None:
    """Write a `value` as JSON to `path` atomically, with sorted keys.

    Raises:
        UserError: The disk is full or the folder cannot be written.
    """
    with atomic_write(path) as handle:
        json.dump(value, handle, indent=1, ensure_ascii=False, sort_keys=True)
        handle.write("\n")


def finite(value: Any) -> Any:
    """Replace numbers that JSON does not have, such as infinite losses, by null."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse(content: str | bytes) -> Any:
    """Return the value of a JSON text, read strictly.

    Raises:
        ValueError: The content is not JSON, or an object has a key twice.
        RecursionError: It nests too deeply.
    """
    return json.loads(content, object_pairs_hook=without_repeats)


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of key-value pairs.

    Raises:
        ValueError: A key appears twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {shown(repeated)} appears twice")
    return found


def read_json(path: Path) -> Any:
    """Return the value of a JSON file.

    Raises:
        UserError: The file is missing or is not JSON.
    """
    try:
        return parse(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); remove it and run again") from error


FORMULA = re.compile(r"'*[=+\-@\t].", re.DOTALL)
"""The start of a text that a spreadsheet would evaluate, after any apostrophes that were added before."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def as_text(cell: Any) -> Any:
    """Return a text with an apostrophe before it if a spreadsheet would evaluate it; other values stay.

    A carriage return becomes a space, because many readers end a row there and the writer would not quote it.
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
    """Write a table with a header to a file `path`; see `csv_text`."""
    with atomic_write(path) as handle:
        handle.write(csv_text(rows, columns, texts))


def csv_text(
    rows: "DataFrame | Sequence[dict[str, Any]]",
    columns: Sequence[str] | None = None,
    texts: Sequence[str] = (),
) -> str:
    """Return a table with a header as CSV.

    Args:
        rows: One dictionary or data frame row per line.
        columns: Columns in order; None for all.
        texts: Columns with text of models or data, which `as_text` protects.
    """
    from pandas import DataFrame  # takes 0.4 s to import

    frame = DataFrame(rows, columns=None if columns is None else list(columns), dtype=object)
    for name in frame.columns.intersection(list(texts)):
        frame[name] = frame[name].map(as_text)
    return frame.to_csv(index=False, lineterminator="\n")

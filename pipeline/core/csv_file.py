"""CSV with a header."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.core.files import atomic_write

if TYPE_CHECKING:
    from pandas import DataFrame


def write_csv(path: Path, rows: "DataFrame | Sequence[dict[str, Any]]", columns: Sequence[str] | None = None) -> None:
    """`rows` with a header; columns: in their order, None = all."""
    from pandas import DataFrame  # 0.4 s, which only what writes tables should take

    frame = DataFrame(rows, columns=None if columns is None else list(columns), dtype=object)
    with atomic_write(path) as handle:
        frame.to_csv(handle, index=False, lineterminator="\n")

"""JSON, one value a file."""

import json
from pathlib import Path
from typing import Any

from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write


def write_json(path: Path, value: Any) -> None:
    with atomic_write(path) as handle:
        json.dump(value, handle, indent=1, ensure_ascii=False, sort_keys=True)
        handle.write("\n")


def read_json(path: Path) -> Any:
    """Raises UserError when `path` is missing or is not JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); remove it and run again") from error

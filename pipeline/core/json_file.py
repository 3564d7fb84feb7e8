"""JSON files, one value each."""

import json
from pathlib import Path
from typing import Any

from pipeline.core.errors import UserError, shown
from pipeline.core.files import atomic_write


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON atomically, with sorted keys.

    Args:
        path: The file; its folder need not exist yet.
        value: Anything that `json` can write.

    Raises:
        UserError: The disk is full or the folder cannot be written.
    """
    with atomic_write(path) as handle:
        json.dump(value, handle, indent=1, ensure_ascii=False, sort_keys=True)
        handle.write("\n")


def parse(content: str | bytes) -> Any:
    """Parse JSON strictly.

    Returns:
        The value.

    Raises:
        ValueError: The content is not JSON, or an object has a key twice.
        RecursionError: It nests too deeply.
    """
    return json.loads(content, object_pairs_hook=without_repeats)


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object of its key-value pairs.

    Returns:
        The object.

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
    """Read a JSON file.

    Returns:
        The value.

    Raises:
        UserError: The file is missing or is not JSON.
    """
    try:
        return parse(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); remove it and run again") from error

"""Text that nothing reads once its corpus is encoded: `free` may remove it, and `verify` does not miss it."""

from pathlib import Path


def is_read_by_training_alone(path: Path, form: str) -> bool:
    """form: of its corpus; by the tags and words of training trees parses are scored."""
    return path.name.startswith("train.") and not (form == "trees" and path.name.startswith("train.tok."))

"""Training text that `free` may remove and `verify` does not report as missing."""

from pathlib import Path


def is_read_by_training_alone(path: Path, form: str) -> bool:
    """Return whether nothing reads a file of a corpus of this form once the corpus is encoded.

    Scoring of parses reads the words and tags of the training trees.
    """
    return path.name.startswith("train.") and not (form == "trees" and path.name.startswith("train.tok."))

"""Files of a run's `checkpoints/`, by the update that they were written after; no torch."""

import re
from pathlib import Path

WEIGHTS, RESUME = "safetensors", "resume.safetensors"


def numbered(folder: Path, kind: str) -> list[tuple[int, Path]]:
    """(n, path) of the files `step-<n>.<kind>`, by n."""
    found = ((re.fullmatch(rf"step-(\d+)\.{kind}", path.name), path) for path in folder.glob("step-*"))
    return sorted((int(match[1]), path) for match, path in found if match)

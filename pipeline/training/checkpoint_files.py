"""Names and headers of the tensor files of a run, without torch.

A run's folder `checkpoints/` holds `step-<n>.<kind>` files, n the training steps before it was written. Each is a
safetensors file whose header holds a JSON object of metadata (tensor_file.py).
"""

import re
from pathlib import Path
from typing import IO, Any

from pipeline.core.json_file import parse
from pipeline.core.retries import read_with_retries

WEIGHTS, RESUME = "safetensors", "resume.safetensors"
RESUME_FILES = 2
"""Resume files that are kept, the newest ones."""
METADATA_ENTRY = "reprise"
"""One header entry for all metadata: the order of several is not fixed, and equal content should give equal bytes."""


class DamagedFileError(Exception):
    """A tensor file that is missing, truncated, altered, or of another format."""


def numbered(folder: Path, kind: str) -> list[tuple[int, Path]]:
    """Return (n, path) of the files `step-<n>.<kind>`, in the order of n.

    Args:
        folder: The folder `checkpoints/` of a run; it may be missing.
        kind: `WEIGHTS` or `RESUME`.
    """
    matches = ((re.fullmatch(rf"step-(\d+)\.{kind}", path.name), path) for path in folder.glob("step-*"))
    return sorted((int(match[1]), path) for match, path in matches if match)


def weight_files(run_folder: Path) -> list[tuple[int, Path]]:
    """Return (step, path) of the weights kept for averaging, oldest first."""
    return numbered(Path(run_folder) / "checkpoints", WEIGHTS)


def read_metadata(path: Path) -> dict[str, Any]:
    """Read the metadata of a tensor file, `key` and `digest` among them, from its header.

    Returns:
        The metadata.

    Raises:
        DamagedFileError: The file is missing, or its header is not ours.
        UserError: The file cannot be read, which says nothing about its content.
    """
    try:
        return parse_metadata(read_with_retries(path, header_length), path)
    except FileNotFoundError as error:
        raise DamagedFileError(f"{path}: no such file") from error


def header_length(handle: IO[bytes]) -> int:
    """Return the bytes before the tensors: the length of the JSON header, as eight bytes, and the header."""
    return 8 + int.from_bytes(handle.read(8), "little")


def parse_metadata(content: bytes, path: Path) -> dict[str, Any]:
    """Parse the metadata from the first bytes of the file `path`.

    Args:
        content: At least the header, which starts with its length.
        path: The file, for messages.

    Returns:
        The metadata, with at least `key` and `digest`.

    Raises:
        DamagedFileError: They are not the header of a tensor file with metadata.
    """
    try:
        header = parse(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = parse(header["__metadata__"][METADATA_ENTRY])
        return metadata | {"key": metadata["key"], "digest": metadata["digest"]}
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path}: not a complete tensor file of this project ({error})") from error

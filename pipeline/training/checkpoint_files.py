"""Names and headers of checkpoints, read without torch, so that help, planning and status start fast.

The folder `checkpoints/` of a run contains files `step-<n>.<kind>`, written after n training steps. Each is a
safetensors file whose header contains a JSON object of metadata (tensor_file.py).
"""

import re
from pathlib import Path
from typing import IO, Any

from pipeline.core.json_csv import parse
from pipeline.core.retries import read_with_retries

WEIGHTS, RESUME = "safetensors", "resume.safetensors"
RESUME_FILES = 2
"""Number of resume files to keep, the newest ones."""
METADATA_ENTRY = "reprise"
"""Header entry of all metadata: the order of several entries is not fixed, and equal content must give equal bytes."""


class DamagedFileError(Exception):
    """A tensor file that is missing, truncated, altered, or of another format."""


def numbered(folder: Path, kind: str) -> list[tuple[int, Path]]:
    """Return (n, path) of the files `step-<n>.<kind>` in a `folder`, if any, of `kind` WEIGHTS or RESUME, by n."""
    matches = ((re.fullmatch(rf"step-(\d+)\.{kind}", path.name), path) for path in folder.glob("step-*"))
    return sorted((int(match[1]), path) for match, path in matches if match)


def weight_files(run_folder: Path) -> list[tuple[int, Path]]:
    """Return (step, path) of the weights kept for averaging, oldest first."""
    return numbered(Path(run_folder) / "checkpoints", WEIGHTS)


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the metadata of a tensor file from its header, with at least `key` and `digest`.

    Raises:
        DamagedFileError: The file is missing, or its header is not one of this project.
        UserError: The file cannot be read, which says nothing about its content.
    """
    try:
        return parse_metadata(read_with_retries(path, header_length), path)
    except FileNotFoundError as error:
        raise DamagedFileError(f"{path}: no such file") from error


def header_length(handle: IO[bytes]) -> int:
    """Return the number of bytes before the tensors: eight for the length of the JSON header, and the header."""
    return 8 + int.from_bytes(handle.read(8), "little")


def parse_metadata(content: bytes, path: Path) -> dict[str, Any]:
    """Return the metadata, with `key` and `digest`, in the first bytes, `content`, of the file `path`.

    Raises:
        DamagedFileError: The bytes are not the header of a tensor file with metadata.
    """
    try:
        header = parse(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = parse(header["__metadata__"][METADATA_ENTRY])
        return metadata | {"key": metadata["key"], "digest": metadata["digest"]}
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path}: not a complete tensor file of this project ({error})") from error

"""Whether a file of named tensors is what was written, found without torch."""

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import IO, Any

from pipeline.core.json_file import parse
from pipeline.core.retries import read_with_retries
from pipeline.training.tensor_header import DamagedFileError, facts_in, length_of_head

TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool", "U8": "uint8"}
TYPES |= {f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}
"""Of safetensors, and torch's names of them."""
CHUNK = 1 << 20


def check_tensors(path: Path) -> None:
    """Hash the tensors, a little at a time.

    Raises:
        DamagedFileError: the file is not what was written.
        OSError: it is absent, or can't be read.
    """
    head = read_with_retries(path, length_of_head)
    facts = facts_in(head, path)
    recorded = facts.pop("digest")
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    with open(path, "rb", buffering=0) as handle:
        for name, kind, begin, end in tensors_in(head, path):
            digest.update(f"{name} {kind}\n".encode())
            if not 0 <= begin <= end <= os.fstat(handle.fileno()).st_size - len(head):
                raise DamagedFileError(f"{path}: cut off")
            handle.seek(len(head) + begin)
            hash_bytes(handle, end - begin, digest)
    if digest.hexdigest() != recorded:
        raise DamagedFileError(f"{path}: content does not match its digest")


def tensors_in(head: bytes, path: Path) -> list[tuple[str, str, int, int]]:
    """(name, type and shape, first byte, end) by name; bytes count from the end of the header."""
    header = {name: entry for name, entry in parse(head[8:]).items() if name != "__metadata__"}
    try:
        return [
            (name, f"torch.{TYPES[entry['dtype']]} {tuple(entry['shape'])}", int(begin), int(end))
            for name, entry in sorted(header.items())
            for begin, end in [entry["data_offsets"]]
        ]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DamagedFileError(f"{path}: not a whole tensor file of ours ({error})") from error


def hash_bytes(handle: IO[bytes], count: int, digest: Any) -> None:
    """Raises OSError when the disk ends the file early."""
    while count:
        content = handle.read(min(count, CHUNK))
        if not content:
            raise OSError(errno.EIO, f"{count} bytes could not be read")
        digest.update(content)
        count -= len(content)

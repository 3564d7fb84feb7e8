"""Check whether a file is what its stage wrote: by a recorded digest, by its own digest, or by parsing it."""

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, Literal

from pipeline.config import load_run
from pipeline.core import artifacts, digests, files, json_csv, layout, retries
from pipeline.core.errors import UnreadableError, UserError, count_of
from pipeline.core.records import corpus, jobs, outputs, training
from pipeline.core.records.record import read_as, read_lines_as
from pipeline.training.checkpoint_files import DamagedFileError, header_length, parse_metadata

OWN_DIGEST = ".safetensors"
State = Literal["good", "damaged", "missing", "unreadable"]

NAMED: dict[str, Any] = {
    layout.CORPUS_FILE: corpus.AnyCorpus,
    layout.DONE_FILE: training.TrainedRun,
    layout.COST_FILE: training.TrainingCost,
    "subwords.json": corpus.Vocabularies,
}
"""Record types by file name."""
LINES: dict[str, Any] = {
    layout.PROGRESS_FILE: training.AnyProgress,
    layout.SAMPLES_FILE: training.SampleLine,
    layout.STATE_FILE: jobs.AnyEvent,
}
MARKS: dict[type[artifacts.Artifact], Any] = {
    artifacts.Spoken: corpus.SpokenReport,
    artifacts.Tuned: outputs.TunedWeights,
    artifacts.Score: outputs.ScoreFile,
    artifacts.Gates: outputs.GateValues,
    artifacts.AttentionMaps: outputs.AttentionMap,
    artifacts.Alignments: outputs.AlignmentMaps,
    artifacts.ModelSizes: outputs.PaperSizes,
    artifacts.LayerTimes: outputs.LayerCosts,
}
"""Record types of the file that stands for an artifact."""


@dataclass(frozen=True)
class FileCheck:
    """The result for a file, or for a folder of files that were made together.

    Attributes:
        path: The file or folder.
        state: The result.
        bytes: Size.
        fault: What is wrong, if it is not good.
    """

    path: Path
    state: State
    bytes: int = 0
    fault: str = ""


def check_file(path: Path, kind: Any = None, digest: str | None = None) -> FileCheck:
    """Return the check of a file (see `find_fault`)."""
    try:
        fault = find_fault(path, kind, digest)
        return FileCheck(path, "damaged" if fault else "good", bytes_of(path), fault or "")
    except FileNotFoundError:
        return FileCheck(path, "missing", 0, "is not there")
    except (OSError, UnreadableError) as error:
        return FileCheck(path, "unreadable", 0, getattr(error, "strerror", None) or str(error))


def find_fault(path: Path, kind: Any, digest: str | None) -> str | None:
    """Return what is wrong with a file, or None.

    Args:
        path: The file or folder.
        kind: Type of the record that it holds, if known.
        digest: Its digest according to another record.

    Raises:
        OSError: The file does not exist or cannot be read.
        UnreadableError: The file cannot be read.
    """
    try:
        written = digest or digests.noted_digest(path)
    except digests.DamagedNoteError:
        path.stat()
        if path.suffix != OWN_DIGEST:
            return f"can't be checked: {files.note_path(path)} is damaged"
        written = None
    if written and cached_digest(path) != written:
        return "is not what was written: its digest differs"
    try:
        if path.suffix == OWN_DIGEST and not written:
            check_tensors(path)
        elif path.name == layout.RUN_FILE:
            load_run(path)
        elif lines := LINES.get(path.name):
            read_lines_as(lines, path)
        elif kind := kind or NAMED.get(path.name):
            read_as(kind, path)
        elif path.suffix == ".json":
            json_csv.parse(path.read_bytes())
        else:
            path.stat()
    except UnreadableError:
        raise
    except (DamagedFileError, UserError, ValueError, RecursionError) as error:
        path.stat()
        return str(error).removeprefix(f"{path}: ").partition("; ")[0]
    return None


def damaged_notes(found: Iterable[FileCheck]) -> list[FileCheck]:
    """Return the damaged notes of files that other evidence shows to be good."""
    return [
        FileCheck(note, "damaged", bytes_of(note), f"holds no digest; {check.path.name} itself is whole")
        for check in found
        for note in [files.note_path(check.path)]
        if check.state == "good" and has_damaged_note(check.path)
    ]


def has_damaged_note(path: Path) -> bool:
    """Return whether the note of a file holds no digest."""
    try:
        digests.noted_digest(path)
    except digests.DamagedNoteError:
        return True
    return False


@cache
def cached_digest(path: Path) -> str:
    """Return the digest of a file, computed once per process."""
    return retries.retry_read(path, partial(digests.digest_of, path))


def bytes_of(path: Path) -> int:
    """Return the size of a file or folder; files that vanish, and links to nothing, add nothing to a folder's."""
    if not path.is_dir():
        return path.stat().st_size
    total = 0
    for inner in path.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += inner.stat().st_size
    return total


TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool", "U8": "uint8"}
TYPES |= {f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}
"""Element types of safetensors, and torch's names of them."""
CHUNK = 1 << 20


def check_tensors(path: Path) -> None:
    """Compare a tensor file with the digest in its header, in small chunks and without torch.

    Raises:
        DamagedFileError: The file is not what was written.
        OSError: It does not exist or cannot be read.
    """
    head = retries.read_with_retries(path, header_length)
    facts = parse_metadata(head, path)
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
    """List the tensors of a file by name.

    Args:
        head: The header, with the eight bytes of its length.
        path: The file, for messages.

    Returns:
        For each: name, type and shape, first byte, end; bytes count from the end of the header.

    Raises:
        DamagedFileError: The header does not describe tensors.
    """
    header = {name: entry for name, entry in json_csv.parse(head[8:]).items() if name != "__metadata__"}
    try:
        return [
            (name, f"torch.{TYPES[entry['dtype']]} {tuple(entry['shape'])}", int(begin), int(end))
            for name, entry in sorted(header.items())
            for begin, end in [entry["data_offsets"]]
        ]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DamagedFileError(f"{path}: not a complete tensor file of this project ({error})") from error


def hash_bytes(handle: IO[bytes], count: int, digest: Any) -> None:
    """Hash the next `count` bytes.

    Args:
        handle: A file opened for reading, at the first byte.
        count: Bytes to read.
        digest: A hash of `hashlib`, which is updated.

    Raises:
        OSError: The disk ends the file early.
    """
    while count:
        content = handle.read(min(count, CHUNK))
        if not content:
            raise OSError(errno.EIO, f"{count_of(count, 'byte')} could not be read")
        digest.update(content)
        count -= len(content)

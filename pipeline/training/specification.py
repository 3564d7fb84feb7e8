"""Files of a run that say what it trains and how far it came, read without torch.

`run.yaml` is the specification, from which the run's key and FLOPs follow. The folder `checkpoints/` contains files
`step-<n>.<kind>`, written after n training steps. Each is a safetensors file whose header contains a JSON object of
metadata (tensor_file.py). Without torch, help, planning and status start fast.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import yaml

from pipeline.config import RunSpec, load_run
from pipeline.core import digests, files, json_csv, layout, retries
from pipeline.core.command_line import Argument
from pipeline.core.records.corpus import read_corpus
from pipeline.core.schema import parse_json
from pipeline.models.language_model.settings import fused_training_flops
from pipeline.models.settings import BatchShape, training_flops

SAVE_EVERY_S = 300.0


@dataclass(frozen=True)
class MachineOptions:
    """Options of the process that trains.

    Attributes:
        device: Where to train. `auto` takes a GPU if there is one.
        threads: CPU threads of this process; by default OMP_NUM_THREADS, or all cores. `continue` takes the threads
            of the run.
        save_every: Seconds between checkpoints.
    """

    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int | None = None
    save_every: Annotated[float, Argument(metavar="S")] = SAVE_EVERY_S


def write_specification(run_folder: Path, specification: str) -> None:
    """Write `run.yaml` of `run_folder`, made if needed, from the JSON `specification`, unless it has that content.

    Raises:
        UserError: The specification is invalid.
    """
    path, spec = run_folder / layout.RUN_FILE, parse_json(RunSpec, specification, "--spec")
    text = yaml.safe_dump(spec.model_dump(), sort_keys=False)
    if path.exists() and path.read_text(encoding="utf-8", errors="replace") == text:
        return
    with digests.recording_digests(), files.atomic_write(path) as handle:
        handle.write(text)


def run_key(run_folder: Path) -> str:
    """Return the digest of everything that decides the final weights of the run in `run_folder`.

    Two runs with the same key end in the same weights on the same machine. Checkpoints and `done.json` contain the key,
    so that files of another run are detected. The folder's name does not contain it, because it depends on the
    built corpus.

    Raises:
        UserError: `run.yaml` or the corpus is missing or faulty.
    """
    return key_of(load_run(Path(run_folder) / layout.RUN_FILE))


def key_of(spec: RunSpec) -> str:
    """Return the digest of a run's specification and of the corpus that it names.

    Settings at their defaults are left out, so that a setting added later does not change the keys of finished runs.
    Runs that provide weights contribute their own keys.
    """
    parts = {name: run_key(Path(folder)) for name, folder in spec.weight_sources.items()}
    corpus = read_corpus(Path(spec.corpus)).digest
    return digests.sha256_json({"spec": spec.content(), "corpus": corpus, "parts": parts})


def run_flops(spec: RunSpec, shape: BatchShape) -> float:
    """Return the FLOPs of forward and backward pass of a batch, including a fused language model."""
    if spec.fusion is None or spec.language_model is None:
        return training_flops(spec.model, shape)
    frozen = spec.fusion.kind == "deep" or spec.training.trained_part == "fusion"
    return fused_training_flops(spec.fusion, spec.model, spec.language_model.model, shape, frozen)


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
        return parse_metadata(retries.read_with_retries(path, header_length), path)
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
        header = json_csv.parse(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = json_csv.parse(header["__metadata__"][METADATA_ENTRY])
        return metadata | {"key": metadata["key"], "digest": metadata["digest"]}
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path}: not a complete tensor file of this project ({error})") from error

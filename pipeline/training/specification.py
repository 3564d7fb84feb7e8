"""The specification of a run, `run.yaml`, from which its key and FLOPs follow; read without torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import yaml

from pipeline.config import RunSpec, load_run
from pipeline.core import digests, files, layout
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

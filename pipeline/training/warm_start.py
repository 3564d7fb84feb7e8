"""Runs of one system, dataset and seed with other settings, and continuing a shorter one."""

import itertools
import logging
import math
from pathlib import Path
from typing import Any

from torch import Tensor

from pipeline.config import RunSpec, load_run, sibling_runs
from pipeline.core import files, layout, retries
from pipeline.core.errors import UserError
from pipeline.core.records.training import RollBack
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.checkpoint_files import RESUME, WEIGHTS, DamagedFileError, numbered
from pipeline.training.specification import key_of, run_key
from pipeline.training.state import TrainingState
from pipeline.training.tensor_file import read_tensor_file, write_tensor_file

log = logging.getLogger(__name__)


def log_siblings(run_folder: Path, spec: RunSpec) -> None:
    """Log the runs of the system, dataset and seed of `run_folder`, and how their settings differ from `spec`."""
    for folder in sibling_runs(run_folder):
        try:
            differences = "; ".join(spec.differences(load_run(folder / layout.RUN_FILE))) or "the same settings"
        except UserError as error:  # e.g. by a version with other keys
            differences = f"settings that cannot be read ({error})"
        log.info("another run of this system and seed is %s: there, %s", folder.name, differences)


def depends_on_length(spec: RunSpec) -> bool:
    """Return whether training steps depend on the number of steps of the whole training."""
    return bool(spec.training.branch_freeze_steps) or spec.training.schedule == "cosine"


def shorter_runs(run_folder: Path, spec: RunSpec) -> list[Path]:
    """Return sibling runs that this one can continue, the longest first.

    They differ only in a smaller number of steps or patience. If steps depend on the length of the training, they
    differ only in patience.
    """
    most, patience = spec.training.max_steps, spec.training.patience or math.inf
    least = most if depends_on_length(spec) else 0

    def is_shorter(folder: Path) -> bool:
        try:
            other = load_run(folder / layout.RUN_FILE)
            training = other.training
            ends_sooner = least <= training.max_steps <= most and (training.patience or math.inf) <= patience
            return ends_sooner and key_of(other) == key_of(with_length(spec, training.max_steps, training.patience))
        except UserError:
            return False  # its corpus is gone, or its settings cannot be read

    found = filter(is_shorter, sibling_runs(run_folder))
    return sorted(found, key=lambda folder: -max((n for n, _ in numbered(folder / "checkpoints", RESUME)), default=0))


def with_length(spec: RunSpec, steps: int, patience: int | None) -> RunSpec:
    """Return the `spec` with other numbers of `steps` and `patience`, in validations; None for no early end."""
    length = {"max_steps": steps, "patience": patience}
    return spec.model_copy(update={"training": spec.training.model_copy(update=length)})


def continue_from(checkpoints: Checkpoints, shorter: Path, other_schedule: bool = False) -> int | None:
    """Copy checkpoints, logs and costs of a shorter run into one that has not begun.

    Args:
        checkpoints: Those of the new run.
        shorter: Folder of the shorter run.
        other_schedule: Record that the shorter run had another schedule.

    Returns:
        The step from which the new run resumes; None if the shorter run has no whole checkpoint.
    """
    key = run_key(shorter)
    for step, path in reversed(numbered(shorter / "checkpoints", RESUME)):
        try:
            tensors, metadata = read_of_run(path, key)
            returned = TrainingState.from_dict(metadata["state"]).returned
            for kept in kept_steps(shorter, step, returned)[-checkpoints.keep :]:
                weights, _ = read_of_run(shorter / "checkpoints" / f"step-{kept}.{WEIGHTS}", key)
                write_tensor_file(checkpoints.weights_path(kept), weights, {"key": checkpoints.key, "step": kept})
        except DamagedFileError as error:
            log.warning("cannot continue from %s (`verify` explains why): %s", path, error)
            continue
        for source in (path for name in (*layout.TELEMETRY_FILES, f"{layout.EVENTS}/*") for path in shorter.glob(name)):
            with files.replace_file(checkpoints.run_folder / source.relative_to(shorter), "wb") as file:
                file.write(retries.read_with_retries(source))
        state = metadata["state"] | ({"continued_from": shorter.name} if other_schedule else {})
        own = {"key": checkpoints.key, "step": step, "state": state, "machine": metadata["machine"]}
        write_tensor_file(checkpoints.folder / path.name, tensors, own)  # last: it marks that the run has begun
        log.info("continuing from step %d of %s, which was trained with the same settings", step, shorter.name)
        return step
    return None


def read_of_run(path: Path, key: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return tensors (…) by name and metadata of a checkpoint `path` of the run with this `key`.

    Raises:
        DamagedFileError: It is damaged, missing, or belongs to another run than `key`.
    """
    tensors, metadata = read_tensor_file(path)
    if metadata["key"] != key:
        raise DamagedFileError(f"{path}: belongs to another run")
    return tensors, metadata


def kept_steps(shorter: Path, last: int, returned: RollBack | None) -> list[int]:
    """Return the steps, up to the `last`, whose weights a `shorter` run kept and a longer one would keep.

    If the shorter run ended between two kept steps, its final weights took the place of the oldest. If it `returned`
    to good weights, those that it gave up are gone, and earlier ones may have been pruned to make place for them.
    """
    training = load_run(shorter / layout.RUN_FILE).training
    steps = list(range(training.checkpoint_every, last + 1, training.checkpoint_every))
    if returned:
        there = {step for step, _ in numbered(shorter / "checkpoints", WEIGHTS)}
        steps = [step for step in steps if step in there or step >= returned.at]
    return steps[max(0, len(steps) - training.keep_checkpoints + bool(last % training.checkpoint_every)) :]


def move_aside(run_folder: Path, old_key: str) -> Path:
    """Return a sibling of `run_folder`, `RUN.before-KEY`, with everything that the training of `old_key` wrote.

    So a changed setting does not discard days of work. The final weights move last: while they are there, the next
    start continues a move that was killed, into the folder that has none yet.
    """
    first = run_folder.absolute().with_name(f"{run_folder.absolute().name}{layout.OLD_RUN}{old_key[:8]}")
    further = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    aside = next(path for path in itertools.chain((first,), further) if not (path / layout.WEIGHTS_FILE).exists())
    aside.mkdir(exist_ok=True)
    log.info(
        "%s: run.yaml or the corpus has changed: training starts from the beginning, the old run is now %s",
        run_folder,
        aside,
    )
    for name in (layout.DONE_FILE, *layout.TELEMETRY_FILES, layout.EVENTS, "checkpoints", layout.WEIGHTS_FILE):
        if (run_folder / name).exists():
            (run_folder / name).rename(aside / name)
            files.sync_folder(aside)
    files.sync_folder(run_folder)
    return aside

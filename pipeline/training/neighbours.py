"""Runs of one system, dataset and seed with other settings: they lie side by side, and a longer one goes on from a
shorter one."""

import itertools
import logging
import math
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from pipeline.config import RunSpec, load_run, sibling_runs
from pipeline.core.errors import UserError
from pipeline.core.files import sync_folder
from pipeline.core.layout import DONE_FILE, EVENTS, OLD_RUN, RUN_FILE, TELEMETRY_FILES, WEIGHTS_FILE
from pipeline.training.checkpoint import Checkpoints
from pipeline.training.key import key_of, run_key
from pipeline.training.step_files import RESUME, WEIGHTS, numbered
from pipeline.training.tensor_file import DamagedFileError, read_tensor_file, write_tensor_file

log = logging.getLogger(__name__)


def announce(run_folder: Path, spec: RunSpec) -> None:
    """Name the runs that this one lies beside, and what differs."""
    for folder in sibling_runs(run_folder):
        differences = "; ".join(spec.differences(load_run(folder / RUN_FILE))) or "the same settings"
        log.info("%s stays beside this run: there, %s", folder.name, differences)


def depends_on_length(spec: RunSpec) -> bool:
    """Whether what an update does depends on how many there will be."""
    return bool(spec.training.branch_freeze_steps) or spec.training.schedule == "cosine"


def shorter_runs(run_folder: Path, spec: RunSpec) -> list[Path]:
    """Neighbours that differ in their number of updates or patience alone, and end no later; who got farthest first.

    Of those whose updates depend on how many there will be, they differ in their patience alone.
    """
    most, patience = spec.training.max_steps, spec.training.patience or math.inf
    least = most if depends_on_length(spec) else 0

    def is_shorter(other: RunSpec) -> bool:
        training = other.training
        try:
            ends_sooner = least <= training.max_steps <= most and (training.patience or math.inf) <= patience
            return ends_sooner and key_of(other) == key_of(of_length(spec, training.max_steps, training.patience))
        except UserError:
            return False  # its corpus is gone

    found = [folder for folder in sibling_runs(run_folder) if is_shorter(load_run(folder / RUN_FILE))]
    return sorted(found, key=lambda folder: -max((n for n, _ in numbered(folder / "checkpoints", RESUME)), default=0))


def of_length(spec: RunSpec, steps: int, patience: int | None) -> RunSpec:
    """The same with another number of updates, and another patience."""
    length = {"max_steps": steps, "patience": patience}
    return spec.model_copy(update={"training": spec.training.model_copy(update=length)})


def take_up(checkpoints: Checkpoints, shorter: Path, continued: bool = False) -> int | None:
    """Give a run that has not begun the checkpoints of a shorter one; the update it goes on from, None without.

    What the former measured, logged and cost comes with them.

    Args:
        continued: note that the shorter training's schedule was another one until then.
    """
    key = run_key(shorter)
    for step, path in reversed(numbered(shorter / "checkpoints", RESUME)):
        try:
            tensors, facts = of_key(path, key)
            for kept in kept_until(shorter, step)[-checkpoints.keep :]:
                weights, _ = of_key(shorter / "checkpoints" / f"step-{kept}.{WEIGHTS}", key)
                write_tensor_file(checkpoints.kept(kept), weights, {"key": checkpoints.key, "step": kept})
        except DamagedFileError as error:
            log.warning("training does not go on from %s (`verify` says more): %s", path, error)
            continue
        for name in TELEMETRY_FILES:
            if (shorter / name).exists():
                shutil.copyfile(shorter / name, checkpoints.run_folder / name)
        if (shorter / EVENTS).exists():
            shutil.copytree(shorter / EVENTS, checkpoints.run_folder / EVENTS, dirs_exist_ok=True)
        state = facts["state"] | ({"continued_from": shorter.name} if continued else {})
        own = {"key": checkpoints.key, "step": step, "state": state, "machine": facts["machine"]}
        write_tensor_file(checkpoints.folder / path.name, tensors, own)  # last: from now on the run has begun
        log.info("going on from update %d of %s, which was trained with the same settings", step, shorter.name)
        return step
    return None


def of_key(path: Path, key: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and facts of a checkpoint. Raises DamagedFileError, too, when it is another run's."""
    tensors, facts = read_tensor_file(path)
    if facts["key"] != key:
        raise DamagedFileError(f"{path}: is another run's")
    return tensors, facts


def kept_until(shorter: Path, last: int) -> list[int]:
    """After which updates a run kept weights that a longer one would keep; not the oldest if it ended between two."""
    training = load_run(shorter / RUN_FILE).training
    steps = list(range(training.checkpoint_every, last + 1, training.checkpoint_every))
    return steps[max(0, len(steps) - training.keep_checkpoints + bool(last % training.checkpoint_every)) :]


def move_beside(run_folder: Path, old_key: str) -> Path:
    """Move all that the training of `old_key` wrote to `RUN.before-KEY`, a folder beside the run's; returns it: days of
    work are not thrown away because a setting changed.

    The final weights go last: as long as they are there, a move that a kill cut short goes on at the next start, into
    the folder that has none yet.
    """
    first = run_folder.absolute().with_name(f"{run_folder.absolute().name}{OLD_RUN}{old_key[:8]}")
    further = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    aside = next(path for path in itertools.chain((first,), further) if not (path / WEIGHTS_FILE).exists())
    aside.mkdir(exist_ok=True)
    log.info("%s: run.yaml or the corpus changed since it was trained: anew; what it was is now %s", run_folder, aside)
    for name in (DONE_FILE, *TELEMETRY_FILES, EVENTS, "checkpoints", WEIGHTS_FILE):
        if (run_folder / name).exists():
            (run_folder / name).rename(aside / name)
            sync_folder(aside)
    sync_folder(run_folder)
    return aside

"""The checkpoints of one run, in its folder `checkpoints/`.

    step-<n>.safetensors          the weights after n updates, kept for averaging: the newest `keep_checkpoints`
    step-<n>.resume.safetensors   all that training needs to go on after n updates: the newest two; when it is done, the
                                  last, from which a longer training goes on

A resume file holds weights, moments, step and running measurements, the number of times that the learning rate was
lowered among them. The rate, the place in the data and the seeds of dropout are functions of these, so there is nothing
else to hold. Weights are written before the resume file of the same step: whatever the moment of a kill, the weights of
every periodic step are there in the end.
While a training runs, a thread writes what is copied for it, in that order.
A file that was read and is not what was written is renamed to `NAME.damaged`; one that can't be read is left alone.
"""

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.core.disk import require_space
from pipeline.core.errors import REPAIR, UserError
from pipeline.core.files import set_aside
from pipeline.core.layout import COST_FILE, DONE_FILE, WEIGHTS_FILE
from pipeline.core.records.training import Machine, Outcome, RollBack, TrainedRun
from pipeline.core.schema import validate
from pipeline.training.background import Background
from pipeline.training.optimiser import Optimiser
from pipeline.training.resume_point import ResumePoint, everything
from pipeline.training.state import TrainingState
from pipeline.training.step_files import RESUME, WEIGHTS, numbered
from pipeline.training.tensor_file import load_into, read_tensor_file, read_weights, tensors_of, write_tensor_file
from pipeline.training.tensor_header import DamagedFileError, read_facts

log = logging.getLogger(__name__)
RESUME_FILES = 2


def weight_files(run_folder: Path) -> list[tuple[int, Path]]:
    """(step, path) of the weights kept for averaging, oldest first."""
    return numbered(Path(run_folder) / "checkpoints", WEIGHTS)


def load_weights(model: torch.nn.Module, path: Path, key: str | None = None) -> dict[str, Any]:
    """Load a weights file into `model` and return its facts (`key`, `step`).

    Raises:
        UserError: the file is damaged, does not fit the model, or is of another run than `key`.
    """
    tensors, facts = read_weights(path, key, REPAIR)
    try:
        load_into(model, tensors)
    except DamagedFileError as error:
        raise UserError(f"{path}: can't be loaded: {error}; train the run again") from error
    return facts


class Checkpoints:
    """Writes, finds and prunes the checkpoints of the run `key` in `run_folder`."""

    def __init__(self, run_folder: Path, key: str, keep: int):
        self.run_folder, self.key, self.keep = Path(run_folder), key, keep
        self.folder = self.run_folder / "checkpoints"
        self.final_weights = self.run_folder / WEIGHTS_FILE
        self.background: Background | None = None

    @contextlib.contextmanager
    def in_background(self) -> Iterator[None]:
        """Within it, checkpoints are copied at once and written by a thread; at its end they are there."""
        self.background = background = Background()
        try:
            yield
            background.finish()
        finally:
            background.close()
            self.background = None

    def finish(self) -> None:
        """Wait until all is written. Raises UserError when something can't be."""
        if self.background:
            self.background.finish()

    def remove_orphans(self) -> None:
        """Remove what a killed training left half-written; the launcher writes to the run folder, too, at any time."""
        ours = [self.run_folder.glob(f".{name}.*.tmp") for name in (self.final_weights.name, DONE_FILE, COST_FILE)]
        for path in itertools.chain(self.folder.glob(".*.tmp"), *ours):
            log.info("removing %s, left half-written by a killed process", path)
            path.unlink(missing_ok=True)

    @property
    def has_any(self) -> bool:
        """Whether the run has begun: something is there to go on from. Kept weights alone are none."""
        return bool(numbered(self.folder, RESUME)) or self.final_weights.exists()

    def foreign(self) -> list[Path]:
        """Checkpoints and final weights of another run."""
        paths = [path for kind in (WEIGHTS, RESUME) for _, path in numbered(self.folder, kind)]
        paths += [self.final_weights] if self.final_weights.exists() else []
        return [path for path in paths if key_of(path) not in (None, self.key) and is_whole(path)]

    def clear(self) -> None:
        """Remove all checkpoints, damaged ones too, and, last, the final weights: the sign of a finished run."""
        for path in (*self.folder.glob("step-*.damaged*"), *self.run_folder.glob(f"{WEIGHTS_FILE}.damaged*")):
            path.unlink()
        for kind in (RESUME, WEIGHTS):
            for _, path in numbered(self.folder, kind):
                path.unlink()
        self.final_weights.unlink(missing_ok=True)

    def clear_resume(self) -> None:
        """Keep the last resume file alone."""
        for _, path in numbered(self.folder, RESUME)[:-1]:
            path.unlink()

    def check_space(self, model: torch.nn.Module, checkpoints: int) -> None:
        """Raises UserError when the disk can't hold what the run will write; `checkpoints`: their number in all."""
        weights = sum(tensor.nbytes for tensor in tensors_of(model).values())
        files = min(self.keep + 2, checkpoints) + 3 * (RESUME_FILES + 1) + 1  # moments: twice the weights
        present = sum(path.stat().st_size for path in self.run_folder.rglob("*.safetensors"))
        require_space(self.run_folder, files * weights - present, "checkpoints (`training.keep_checkpoints` of them)")

    def save_weights(self, model: torch.nn.Module, step: int, good: int | None = None) -> None:
        """Keep the weights after `step` updates for averaging; `good`: those to go back to, which stay, too."""
        self._write_later(self.kept(step), tensors_of(model), {"step": step}, lambda: self.prune(good))

    def prune(self, good: int | None = None) -> None:
        """Remove all kept weights but the newest, and the good ones."""
        for number, path in numbered(self.folder, WEIGHTS)[: -self.keep]:
            if number != good:
                path.unlink()

    def forget(self, given_up: RollBack | None) -> None:
        """Remove what lies between the good weights that a training went back to and where it did so."""
        for kind in (WEIGHTS, RESUME):
            for step, path in numbered(self.folder, kind):
                if given_up and given_up.gave_up(step):
                    path.unlink()

    def save_final(self, tensors: dict[str, Tensor], outcome: Outcome) -> None:
        """Write the weights that the training ends in, and what `done.json` will say."""
        self._write(self.final_weights, tensors, {"step": outcome.steps, "record": outcome.model_dump()})

    def final_outcome(self) -> Outcome | None:
        """What was saved with the final weights, if they are there, whole, and of this run."""
        if not self.final_weights.exists():
            return None
        try:
            facts = read_tensor_file(self.final_weights)[1]
        except DamagedFileError as error:
            aside = set_aside(self.final_weights).name
            log.warning("the final weights are damaged, now %s; training goes on from a checkpoint: %s", aside, error)
            return None
        if facts["key"] != self.key:
            return None
        return validate(Outcome, facts["record"], str(self.final_weights))

    def outcome_of_last(self, done: TrainedRun) -> Outcome | None:
        """Of a finished run without its final weights: what `done` says, if those of the last update were kept."""
        try:
            facts = read_tensor_file(self.kept(done.steps))[1]
        except DamagedFileError:
            return None
        if facts["key"] != self.key:
            return None
        return Outcome(**{name: getattr(done, name) for name in Outcome.model_fields})

    def kept(self, step: int) -> Path:
        return self.folder / f"step-{step}.{WEIGHTS}"

    def save_resume(
        self,
        model: torch.nn.Module,
        optimiser: Optimiser,
        state: TrainingState,
        machine: Machine,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """Write all that is needed to go on; the older ones are removed once the new one is read back, and `then`."""
        tensors = everything(model, optimiser)
        path = self.folder / f"step-{state.step}.{RESUME}"
        facts = {"step": state.step, "state": state.as_dict(), "machine": machine.model_dump()}
        given_up = state.returned

        def tidy() -> None:
            for _, older in numbered(self.folder, RESUME)[:-RESUME_FILES]:
                older.unlink()
            self.forget(given_up)
            then()

        self._write_later(path, tensors, facts, tidy)

    def _write_later(
        self, path: Path, tensors: dict[str, Tensor], facts: dict[str, Any], then: Callable[[], None]
    ) -> None:
        if self.background is None:
            self._write(path, tensors, facts)
            return then()
        copies = {name: tensor.detach().clone() for name, tensor in tensors.items()}

        def write() -> None:
            self._write(path, copies, facts)
            then()

        self.background.do(write)

    def _write(self, path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        try:
            write_tensor_file(path, tensors, {"key": self.key} | facts)
        except DamagedFileError as error:
            set_aside(path)
            raise UserError(f"{error}; check the disk, then run again: earlier checkpoints are kept") from error

    def newest_good(self) -> ResumePoint | None:
        """The newest resume file that is whole; damaged ones are renamed with a warning.

        Raises:
            UserError: one can't be read, so that nobody knows whether it is whole.
        """
        for _, path in reversed(numbered(self.folder, RESUME)):
            try:
                return ResumePoint.read(path)
            except DamagedFileError as error:
                aside = set_aside(path).name
                log.warning("checkpoint is damaged, now %s, falling back to the one before: %s", aside, error)
        return None


def key_of(path: Path) -> str | None:
    """Key of the run that wrote `path`; None when the file is damaged."""
    try:
        return read_facts(path)["key"]
    except DamagedFileError:
        return None


def is_whole(path: Path) -> bool:
    try:
        read_tensor_file(path)
        return True
    except DamagedFileError:
        return False

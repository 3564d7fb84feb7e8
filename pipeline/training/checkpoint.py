"""The checkpoints of one run, in its folder `checkpoints/`.

    step-<n>.safetensors          weights after n steps, kept for averaging: the newest `keep_checkpoints`
    step-<n>.resume.safetensors   everything to resume after n steps: the newest two; of a finished run the last one,
                                  from which a longer training continues

A resume file holds weights, moments, step and measurements. Learning rate, position in the data and dropout seeds are
functions of these. Weights are written before the resume file of the same step, so that no kill loses the weights of a
periodic step. During training a thread writes copies, in order. A file with damaged content is renamed to
`NAME.damaged`; one that cannot be read is left alone.
"""

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pipeline.core.disk import require_space
from pipeline.core.errors import UserError
from pipeline.core.files import set_aside
from pipeline.core.layout import COST_FILE, DONE_FILE, WEIGHTS_FILE
from pipeline.core.records.training import Machine, Outcome, RollBack, TrainedRun
from pipeline.core.schema import validate
from pipeline.training.checkpoint_files import RESUME, RESUME_FILES, WEIGHTS, DamagedFileError, numbered, read_metadata
from pipeline.training.optimiser import Optimiser
from pipeline.training.state import TrainingState
from pipeline.training.tensor_file import (
    RESTORE_CODE,
    BackgroundWriter,
    load_into,
    read_tensor_file,
    tensors_of,
    write_tensor_file,
)

log = logging.getLogger(__name__)

MODEL, MOMENTS = "model.", "adam."
"""Prefixes of the tensors in a resume file; `adam.` stands for any optimiser."""


@dataclass(frozen=True)
class ResumePoint:
    """The content of a resume file."""

    path: Path
    tensors: dict[str, Tensor]
    metadata: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "ResumePoint":
        """Return the content of a resume file.

        Raises:
            DamagedFileError: It is missing or damaged.
        """
        return cls(path, *read_tensor_file(path))

    def restore(self, model: torch.nn.Module, optimiser: Optimiser) -> TrainingState:
        """Return the state after the step of the file, with weights and moments loaded.

        Raises:
            UserError: They do not fit `model`.
        """
        try:
            load_into(model, self._with_prefix(MODEL))
        except DamagedFileError as error:
            raise UserError(f"{self.path}: {error}; {RESTORE_CODE}") from error
        optimiser.load_tensors(self._with_prefix(MOMENTS))
        return TrainingState.from_dict(self.metadata["state"])

    def _with_prefix(self, prefix: str) -> dict[str, Tensor]:
        return {name.removeprefix(prefix): tensor for name, tensor in self.tensors.items() if name.startswith(prefix)}


def resume_tensors(model: torch.nn.Module, optimiser: Optimiser) -> dict[str, Tensor]:
    """Return the tensors of a resume file by prefixed name: those of `model`, and the moments of `optimiser`.

    Each has the shape of its parameter or buffer; a step count is a scalar.
    """
    parts = (MODEL, tensors_of(model)), (MOMENTS, optimiser.tensors())
    return {prefix + name: tensor for prefix, tensors in parts for name, tensor in tensors.items()}


class Checkpoints:
    """Writer, finder and pruner of the checkpoints of the run `key` in `run_folder`; keeps `keep` weight files."""

    def __init__(self, run_folder: Path, key: str, keep: int):
        self.run_folder, self.key, self.keep = Path(run_folder), key, keep
        self.folder = self.run_folder / "checkpoints"
        self.final_weights = self.run_folder / WEIGHTS_FILE
        self.background: BackgroundWriter | None = None

    @contextlib.contextmanager
    def in_background(self) -> Iterator[None]:
        """Within the block, copy checkpoints at once and let a thread write them; finish at its end."""
        self.background = background = BackgroundWriter()
        try:
            yield
            background.finish()
        finally:
            background.pool.shutdown()
            self.background = None

    def finish(self) -> None:
        """Wait until all is written.

        Raises:
            UserError: Something cannot be written.
        """
        if self.background:
            self.background.finish()

    def remove_orphans(self) -> None:
        """Remove files that a killed training left half-written, but not those of the launcher, which also writes."""
        ours = [self.run_folder.glob(f".{name}.*.tmp") for name in (self.final_weights.name, DONE_FILE, COST_FILE)]
        for path in itertools.chain(self.folder.glob(".*.tmp"), *ours):
            log.info("removing %s, left half-written by a killed process", path)
            path.unlink(missing_ok=True)

    @property
    def has_begun(self) -> bool:
        """Return whether there is a resume file or final weights; kept weights alone do not count."""
        return bool(numbered(self.folder, RESUME)) or self.final_weights.exists()

    def foreign(self) -> list[Path]:
        """Return checkpoints and final weights of another run."""
        paths = [path for kind in (WEIGHTS, RESUME) for _, path in numbered(self.folder, kind)]
        paths += [self.final_weights] if self.final_weights.exists() else []
        return [path for path in paths if stored_key(path) not in (None, self.key) and is_whole(path)]

    def clear(self) -> None:
        """Remove all checkpoints, damaged ones too, and last the final weights: they mark a finished run."""
        for path in (*self.folder.glob("step-*.damaged*"), *self.run_folder.glob(f"{WEIGHTS_FILE}.damaged*")):
            path.unlink()
        for kind in (RESUME, WEIGHTS):
            for _, path in numbered(self.folder, kind):
                path.unlink()
        self.final_weights.unlink(missing_ok=True)

    def clear_resume(self) -> None:
        """Remove all resume files but the last."""
        for _, path in numbered(self.folder, RESUME)[:-1]:
            path.unlink()

    def check_space(self, model: torch.nn.Module, checkpoints: int) -> None:
        """Check that the disk can hold what the run of a `model` will write, `checkpoints` weight files in all.

        Raises:
            UserError: There is too little space.
        """
        weights = sum(tensor.nbytes for tensor in tensors_of(model).values())
        # A resume file also has moments, twice the weights.
        files = min(self.keep + 2, checkpoints) + 3 * (RESUME_FILES + 1) + 1
        present = sum(path.stat().st_size for path in self.run_folder.rglob("*.safetensors"))
        require_space(self.run_folder, files * weights - present, "checkpoints (`training.keep_checkpoints` of them)")

    def save_weights(self, model: torch.nn.Module, step: int, good: int | None = None) -> None:
        """Keep the weights of `model` after `step` steps for averaging; prune older ones but those of step `good`."""
        self._write_later(self.weights_path(step), tensors_of(model), {"step": step}, lambda: self.prune(good))

    def prune(self, good: int | None = None) -> None:
        """Remove all kept weights but the newest, and those of step `good`."""
        for number, path in numbered(self.folder, WEIGHTS)[: -self.keep]:
            if number != good:
                path.unlink()

    def remove_rolled_back(self, returned: RollBack | None) -> None:
        """Remove the checkpoints between the step that a training rolled back to and the step at which it did."""
        for kind in (WEIGHTS, RESUME):
            for step, path in numbered(self.folder, kind):
                if returned and returned.gave_up(step):
                    path.unlink()

    def save_final(self, tensors: dict[str, Tensor], outcome: Outcome) -> None:
        """Write the final weights, `tensors` (…) by name, with the `outcome` of the training."""
        self._write(self.final_weights, tensors, {"step": outcome.steps, "record": outcome.model_dump()})

    def final_outcome(self, rename: bool = True) -> Outcome | None:
        """Return the outcome stored with the final weights, None unless they are whole and of this run.

        Damaged ones are renamed, unless another process is to `rename` them.
        """
        if not self.final_weights.exists():
            return None
        try:
            metadata = read_tensor_file(self.final_weights)[1]
        except DamagedFileError as error:
            what = f"renamed to {set_aside(self.final_weights).name}" if rename else "left to the first process"
            log.warning("final weights are damaged, %s; resuming from a checkpoint: %s", what, error)
            return None
        if metadata["key"] != self.key:
            return None
        return validate(Outcome, metadata["record"], str(self.final_weights))

    def outcome_of_last(self, done: TrainedRun) -> Outcome | None:
        """Return the outcome in `done` if the weights of its last step were kept; for a run without final weights."""
        try:
            metadata = read_tensor_file(self.weights_path(done.steps))[1]
        except DamagedFileError:
            return None
        if metadata["key"] != self.key:
            return None
        return Outcome(**{name: getattr(done, name) for name in Outcome.model_fields})

    def weights_path(self, step: int) -> Path:
        """Return the path of the weights after `step` steps."""
        return self.folder / f"step-{step}.{WEIGHTS}"

    def save_resume(
        self,
        model: torch.nn.Module,
        optimiser: Optimiser,
        state: TrainingState,
        machine: Machine,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """Write a resume file of a `model`, with the state after its last step.

        Once it was read back, the writer's thread removes older ones and calls `then`. A resume on another machine is
        logged.
        """
        path = self.folder / f"step-{state.step}.{RESUME}"
        metadata = {"step": state.step, "state": state.as_dict(), "machine": machine.model_dump()}
        returned = state.returned

        def tidy() -> None:
            for _, older in numbered(self.folder, RESUME)[:-RESUME_FILES]:
                older.unlink()
            self.remove_rolled_back(returned)
            then()

        self._write_later(path, resume_tensors(model, optimiser), metadata, tidy)

    def _write_later(
        self, path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any], then: Callable[[], None]
    ) -> None:
        if self.background is None:
            self._write(path, tensors, metadata)
            return then()
        copies = {name: tensor.detach().clone() for name, tensor in tensors.items()}

        def write() -> None:
            self._write(path, copies, metadata)
            then()

        self.background.submit(write)

    def _write(self, path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
        try:
            write_tensor_file(path, tensors, {"key": self.key} | metadata)
        except DamagedFileError as error:
            set_aside(path)
            raise UserError(f"{error}; check the disk, then run again: earlier checkpoints are kept") from error

    def newest_resume_point(self) -> ResumePoint | None:
        """Return the newest whole resume file, if any; rename damaged ones with a warning.

        Raises:
            UserError: A file cannot be read, so that its state is unknown.
        """
        for _, path in reversed(numbered(self.folder, RESUME)):
            try:
                return ResumePoint.read(path)
            except DamagedFileError as error:
                aside = set_aside(path).name
                log.warning("checkpoint is damaged, renamed to %s; using the previous one: %s", aside, error)
        return None


def stored_key(path: Path) -> str | None:
    """Return the key of the run that wrote `path`, None if the file is damaged."""
    try:
        return read_metadata(path)["key"]
    except DamagedFileError:
        return None


def is_whole(path: Path) -> bool:
    """Return whether a tensor file matches its digest."""
    try:
        read_tensor_file(path)
        return True
    except DamagedFileError:
        return False

"""Checkpoints that averaging needs and that a resumed training would not write again."""

from collections.abc import Collection
from pathlib import Path

from pipeline.config.training import TrainingConfig
from pipeline.core.layout import DONE_FILE, WEIGHTS_FILE
from pipeline.core.records.record import read_note
from pipeline.core.records.training import Outcome, TrainedRun
from pipeline.training.checkpoint_files import RESUME, DamagedFileError, numbered, read_metadata
from pipeline.training.state import TrainingState


def weights_due(training: TrainingConfig, folder: Path, last: int, good: Collection[Path], is_over: bool) -> list[int]:
    """Return the steps of the last checkpoints that a training has written already.

    Args:
        training: Its settings.
        folder: Its folder.
        last: How many checkpoints are averaged.
        good: Intact files of the run; the training resumes from the newest resume file among them.
        is_over: The training ended.
    """
    ended = read_note(TrainedRun, folder / DONE_FILE) or outcome_in(folder / WEIGHTS_FILE)
    state = newest_resume(folder, good)
    every, end = training.checkpoint_every, ended.steps if ended else training.max_steps
    if not ended and state.out_of_patience(training):
        end = state.step
    back = ended.returned if ended else state.returned
    due = [one for one in sorted({*range(every, end + 1, every), end}) if not (back and back.gave_up(one))]
    needed = due[max(0, len(due) - last) :]
    return needed if is_over else [step for step in needed if step <= state.step]


def outcome_in(weights: Path) -> Outcome | None:
    """Read the outcome of a training from its final weights, if they exist."""
    try:
        return Outcome.model_validate(read_metadata(weights)["record"])
    except (DamagedFileError, KeyError):
        return None


def newest_resume(folder: Path, good: Collection[Path]) -> TrainingState:
    """Read the state of the newest intact resume file; without one return that of step 0."""
    found = [path for _, path in numbered(folder / "checkpoints", RESUME) if path in good]
    return TrainingState.from_dict(read_metadata(found[-1])["state"]) if found else TrainingState()

"""Which kept weights have to be there for a mean of the last: a training that goes on does not write them again."""

from collections.abc import Collection
from pathlib import Path

from pipeline.config.training import TrainingConfig
from pipeline.core.layout import DONE_FILE, WEIGHTS_FILE
from pipeline.core.records.record import read_note
from pipeline.core.records.training import Outcome, TrainedRun
from pipeline.training.checkpoint_files import RESUME, DamagedFileError, numbered, read_metadata
from pipeline.training.state import TrainingState


def weights_due(training: TrainingConfig, folder: Path, last: int, good: Collection[Path], is_over: bool) -> list[int]:
    """Steps of those among the `last` weights that a training in `folder` has written already.

    good: its files that are whole, the newest resume file among which it goes on from. is_over: nothing is left to do.
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
    """What the final weights say of their training, if they are there."""
    try:
        return Outcome.model_validate(read_metadata(weights)["record"])
    except (DamagedFileError, KeyError):
        return None


def newest_resume(folder: Path, good: Collection[Path]) -> TrainingState:
    """What the newest resume file among them knows; that of update 0 where there is none."""
    found = [path for _, path in numbered(folder / "checkpoints", RESUME) if path in good]
    return TrainingState.from_dict(read_metadata(found[-1])["state"]) if found else TrainingState()

"""Files of trainings: due checkpoints, records that the final weights restore, and text that `free` may remove."""

import os
from collections.abc import Collection
from pathlib import Path

from pipeline.config.training import TrainingConfig
from pipeline.core.digests import digest_of, write_note
from pipeline.core.files import note_path, set_aside
from pipeline.core.layout import DONE_FILE, WEIGHTS_FILE
from pipeline.core.records.training import Outcome, TrainedRun
from pipeline.training.checkpoint_files import RESUME, DamagedFileError, numbered, read_metadata
from pipeline.training.state import TrainingState
from pipeline.workflow.file_checks import check_file


def weights_due(training: TrainingConfig, folder: Path, last: int, good: Collection[Path], is_over: bool) -> list[int]:
    """Return the steps of the last checkpoints that a training has written already.

    A resumed training would not write them again.

    Args:
        training: Its settings.
        folder: Its folder.
        last: How many checkpoints are averaged.
        good: Intact files of the run; the training resumes from the newest resume file among them.
        is_over: The training ended.
    """
    ended = TrainedRun.read_if_valid(folder / DONE_FILE) or outcome_in(folder / WEIGHTS_FILE)
    state = newest_resume(folder, good)
    every, end = training.checkpoint_every, ended.steps if ended else training.max_steps
    if not ended and state.out_of_patience(training):
        end = state.step
    back = ended.returned if ended else state.returned
    due = [step for step in sorted({*range(every, end + 1, every), end}) if not (back and back.gave_up(step))]
    needed = due[max(0, len(due) - last) :]
    return needed if is_over else [step for step in needed if step <= state.step]


def outcome_in(weights: Path) -> Outcome | None:
    """Read the outcome of a training from its final weights, if they exist."""
    try:
        return Outcome.model_validate(read_metadata(weights)["record"])
    except (DamagedFileError, KeyError):
        return None


def newest_resume(folder: Path, good: Collection[Path]) -> TrainingState:
    """Return the state of the newest resume file in `folder` that is `good`; without one, that of step 0."""
    found = [path for _, path in numbered(folder / "checkpoints", RESUME) if path in good]
    return TrainingState.from_dict(read_metadata(found[-1])["state"]) if found else TrainingState()


def is_read_by_training_alone(path: Path, form: str) -> bool:
    """Return whether nothing reads a file of a corpus once the corpus is encoded.

    Such training text may be removed by `free`, and `verify` does not report it as missing. Scoring of parses reads
    the words and tags of the training trees.

    Args:
        path: A file in `raw` or `prepared` of the corpus.
        form: Form of the dataset: sentences, trees, speech or characters.
    """
    return path.name.startswith("train.") and not (form == "trees" and path.name.startswith("train.tok."))


def can_restore_record(folder: Path, bad: set[Path]) -> bool:
    """Return whether `done.json` in a run's `folder`, among its `bad` files, is lost, but in its final weights."""
    record, weights = folder / DONE_FILE, folder / WEIGHTS_FILE
    if bad != {record} or check_file(record).state not in ("damaged", "missing"):
        return False
    return check_file(weights).state == "good" and outcome_in(weights) is not None


def restore_record(folder: Path) -> Path | None:
    """Restore `done.json`, the record of a finished training, from the metadata of its final weights.

    The file gets the modification time of the weights, so that Snakemake rebuilds nothing.

    Returns:
        The new name of the damaged record; None if there was none.
    """
    done, weights = folder / DONE_FILE, folder / WEIGHTS_FILE
    aside = set_aside(done) if done.exists() else None
    note_path(done).unlink(missing_ok=True)
    metadata = read_metadata(weights)
    TrainedRun(key=metadata["key"], weights_digest=digest_of(weights), **metadata["record"]).write(done)
    written = weights.stat()
    os.utime(done, ns=(written.st_atime_ns, written.st_mtime_ns))
    write_note(done)
    return aside

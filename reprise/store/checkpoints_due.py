"""Which kept weights have to be there for a mean of the last: a training that goes on does not write them again."""

import re
from collections.abc import Iterable
from pathlib import Path

from pipeline.config.training import TrainingConfig
from pipeline.layout import DONE_FILE
from pipeline.records.record import read_note
from pipeline.records.training import Return, TrainedRun
from pipeline.training.tensor_header import read_facts


def weights_due(training: TrainingConfig, folder: Path, last: int, good: Iterable[Path], is_over: bool) -> list[int]:
    """Steps of those among the `last` weights that a training in `folder` has written already.

    good: its files that are whole, the newest resume file among which it goes on from. is_over: nothing is left to do.
    """
    done = read_note(TrainedRun, folder / DONE_FILE)
    goes_on, returned = newest_resume(good)
    every, end = training.checkpoint_every, done.steps if done else training.max_steps
    back = done.returned if done else returned
    due = [one for one in sorted({*range(every, end + 1, every), end}) if not (back and back.gave_up(one))]
    needed = due[max(0, len(due) - last) :]
    return needed if is_over else [step for step in needed if step <= goes_on]


def newest_resume(good: Iterable[Path]) -> tuple[int, Return | None]:
    """After how many updates the newest was written, 0 where there is none, and whether it went back before."""
    matches = ((re.fullmatch(r"step-(\d+)\.resume\.safetensors", path.name), path) for path in good)
    step, path = max(((int(match[1]), path) for match, path in matches if match), default=(0, None))
    returned = read_facts(path)["state"].get("returned") if path else None
    return step, Return.model_validate(returned) if returned else None

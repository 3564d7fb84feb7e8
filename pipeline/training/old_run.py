"""Days of work are not thrown away because a setting changed: a finished run of other settings moves beside its run."""

import itertools
import logging
from pathlib import Path

from pipeline.files import sync_folder
from pipeline.layout import COST_FILE, DONE_FILE, OLD_RUN, PROGRESS_FILE, SAMPLES_FILE, WEIGHTS_FILE

log = logging.getLogger(__name__)


def move_beside(run_folder: Path, old_key: str) -> Path:
    """Move all that the training of `old_key` wrote to `RUN.before-KEY`, a folder beside the run's; returns it.

    The final weights go last: as long as they are there, a move that a kill cut short goes on at the next start, into
    the folder that has none yet.
    """
    first = run_folder.absolute().with_name(f"{run_folder.absolute().name}{OLD_RUN}{old_key[:8]}")
    further = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    aside = next(path for path in itertools.chain((first,), further) if not (path / WEIGHTS_FILE).exists())
    aside.mkdir(exist_ok=True)
    log.info("%s: run.yaml or the corpus changed since it was trained: anew; what it was is now %s", run_folder, aside)
    for name in (DONE_FILE, PROGRESS_FILE, SAMPLES_FILE, COST_FILE, "checkpoints", WEIGHTS_FILE):
        if (run_folder / name).exists():
            (run_folder / name).rename(aside / name)
            sync_folder(aside)
    sync_folder(run_folder)
    return aside

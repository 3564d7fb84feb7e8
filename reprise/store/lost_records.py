"""A training's two equal records, `trained.json` and `done.json`, written again from each other or from its weights.

Snakemake may not miss them: what was made of the weights is there. No training is needed, as the weights say it all.
"""

import os
import shutil
from collections.abc import Iterator
from os.path import exists
from pathlib import Path

from pipeline.core.digests import digest_of, note
from pipeline.core.files import note_of, set_aside
from pipeline.core.layout import DONE_FILE, TRAINED_FILE, WEIGHTS_FILE
from pipeline.core.records.record import read_note
from pipeline.core.records.training import TrainedRun
from pipeline.training.tensor_header import read_facts
from pipeline.workflow.file_checks import checked
from reprise.store.checkpoints_due import outcome_in


def lost_records(folder: Path, bad: set[Path]) -> list[Path]:
    """Of a run whose files but for `bad` are good: its lost records, if nothing else is lost."""
    records, weights = records_of(folder), folder / WEIGHTS_FILE
    lost = [path for path in records if checked(path).state in ("damaged", "missing")]
    if not (lost and bad <= set(lost)):
        return []
    if len(lost) == len(records):
        return lost if bad and checked(weights).state == "good" and outcome_in(weights) else []
    said = [read_note(TrainedRun, path) for path in records if path not in lost]
    return lost if all(one and checked(weights, None, one.weights_digest).state == "good" for one in said) else []


def restore(folder: Path, lost: list[Path]) -> Iterator[tuple[Path, Path]]:
    """Write lost records again, as old as they were; gives the new names of what was damaged."""
    for path in lost:
        if exists(path):
            yield path, set_aside(path)
        note_of(path).unlink(missing_ok=True)
    whole = next((path for path in records_of(folder) if path not in lost), None) or from_weights(folder)
    for path in lost:
        if path != whole:
            shutil.copy2(whole, path)
        note(path)


def from_weights(folder: Path) -> Path:
    """Write `done.json`, as a training does that finds its final weights."""
    weights, done = folder / WEIGHTS_FILE, folder / DONE_FILE
    facts, digest = read_facts(weights), digest_of(weights)
    TrainedRun(key=facts["key"], weights_digest=digest, **facts["record"]).write(done)
    written = weights.stat()
    os.utime(done, ns=(written.st_atime_ns, written.st_mtime_ns))
    return done


def records_of(folder: Path) -> list[Path]:
    return [folder / TRAINED_FILE, folder / DONE_FILE]

"""Restore `done.json`, the record of a finished training, from the metadata of its final weights.

It gets the time of the weights, so that Snakemake rebuilds nothing.
"""

import os
from collections.abc import Iterator
from os.path import exists
from pathlib import Path

from pipeline.core.digests import digest_of, write_note
from pipeline.core.files import note_path, set_aside
from pipeline.core.layout import DONE_FILE, WEIGHTS_FILE
from pipeline.core.records.training import TrainedRun
from pipeline.training.checkpoint_files import read_metadata
from pipeline.workflow.file_checks import check_file
from reprise.store.checkpoints_due import outcome_in


def lost_records(folder: Path, bad: set[Path]) -> list[Path]:
    """Return the lost record of a run if nothing else of it is lost.

    Args:
        folder: Folder of the run.
        bad: Files of the run that are damaged or missing.
    """
    record, weights = folder / DONE_FILE, folder / WEIGHTS_FILE
    if check_file(record).state not in ("damaged", "missing") or not bad or not bad <= {record}:
        return []
    return [record] if check_file(weights).state == "good" and outcome_in(weights) else []


def restore(folder: Path, lost: list[Path]) -> Iterator[tuple[Path, Path]]:
    """Restore lost records with the time of the weights; yield damaged files and their new names."""
    for path in lost:
        if exists(path):
            yield path, set_aside(path)
        note_path(path).unlink(missing_ok=True)
    from_weights(folder)
    for path in lost:
        write_note(path)


def from_weights(folder: Path) -> Path:
    """Write `done.json` from the metadata of the final weights."""
    weights, done = folder / WEIGHTS_FILE, folder / DONE_FILE
    facts, digest = read_metadata(weights), digest_of(weights)
    TrainedRun(key=facts["key"], weights_digest=digest, **facts["record"]).write(done)
    written = weights.stat()
    os.utime(done, ns=(written.st_atime_ns, written.st_mtime_ns))
    return done

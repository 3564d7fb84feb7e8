"""How far a training is, by the last lines that it wrote."""

import time
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.errors import UserError
from pipeline.core.files import tail
from pipeline.core.layout import PROGRESS_FILE
from pipeline.core.records.record import parse_record
from pipeline.core.records.training import AnyProgress, ProgressLine

TAIL_BYTES = 1 << 16


@dataclass(frozen=True)
class Progress:
    """The last update that a training told of.

    Attributes:
        loader_share: of the time, spent waiting for batches.
        seconds_left: by the training's own pace, less what has passed since it said so.
        silent_s: seconds since then.
    """

    step: int
    perplexity: float
    tokens_per_s: float
    loader_share: float
    seconds_left: float
    silent_s: float


def read_progress(folder: Path) -> Progress | None:
    """Of the run in `folder`; None before its first line."""
    path = folder / PROGRESS_FILE
    lines = last_lines(path)
    found = next((line for line in reversed(lines) if isinstance(line, ProgressLine)), None)
    if found is None:
        return None
    silent = max(0.0, time.time() - path.stat().st_mtime)
    left = max(0.0, found.seconds_left - silent)
    return Progress(found.step, found.perplexity, found.tokens_per_s, found.loader_share, left, silent)


def last_lines(path: Path) -> list[AnyProgress]:
    """Those at the end of the file that are whole."""
    try:
        whole = tail(path, TAIL_BYTES).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    found = []
    for line in whole:
        try:
            found.append(parse_record(AnyProgress, line, str(path)))
        except UserError:  # the first may be cut
            continue
    return found

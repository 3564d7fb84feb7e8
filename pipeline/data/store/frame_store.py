"""The features of an encoded split: `<stem>.frames` holds all frames in a row, `<stem>.frames.offsets` where each
utterance begins.

A frame is log-mel energies in little-endian float16.
"""

from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from pipeline.data.store.sequence_store import SequenceStore, SequenceWriter, write_sequences

STORED = np.dtype("<f2")
FEATURES, FRAMES_PER_SECOND = 40, 100
"""Of every corpus of speech (Cold Fusion, section 4.3)."""


def frame_files(stem: Path) -> tuple[Path, Path]:
    """Frames, and where each utterance begins."""
    return stem.with_name(stem.name + ".frames"), stem.with_name(stem.name + ".frames.offsets")


class FrameStore(SequenceStore):
    """Read side: (frames, features) float16 of each utterance. `stem` is the path without `.frames`.

    Raises:
        UserError: a file is missing, or its size does not fit the other's.
    """

    def __init__(self, stem: Path, features: int):
        frame = np.dtype((STORED, (features,)))
        super().__init__(frame_files(Path(stem)), [frame], f"frames of {features} features")


def write_frames(stem: Path) -> AbstractContextManager[SequenceWriter]:
    """Open a store for appending utterances, (frames, features) each; both files appear at the end, or not at all."""
    return write_sequences(frame_files(Path(stem)), STORED)

"""The features of an encoded split as two memory-mapped files: all frames in a row, and where each utterance begins.

`<stem>.frames` holds log-mel energies as little-endian float16, `features` a frame; `<stem>.frames.offsets` holds
utterances + 1 little-endian int64, counted in frames. The pages are shared by all processes that read them.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pipeline.errors import UserError
from pipeline.files import atomic_write

STORED = np.dtype("<f2")
FEATURES, FRAMES_PER_SECOND = 40, 100
"""Of every corpus of speech (Cold Fusion, section 5.2)."""


def frames_path(stem: Path) -> Path:
    return stem.with_name(stem.name + ".frames")


def frame_offsets_path(stem: Path) -> Path:
    return stem.with_name(stem.name + ".frames.offsets")


class FrameStore:
    """Read side. `stem` is the path without `.frames`; utterances are numbered from 0.

    Raises:
        UserError: a file is missing, or its size does not fit the other's.
    """

    def __init__(self, stem: Path, features: int):
        stem = Path(stem)
        try:
            self.offsets = np.fromfile(frame_offsets_path(stem), dtype="<i8")
            stored = frames_path(stem).stat().st_size
        except FileNotFoundError as error:
            raise UserError(f"{error.filename}: no such file; run the stage `features` first") from error
        count = int(self.offsets[-1]) if len(self.offsets) else -1
        if stored != count * features * STORED.itemsize:
            raise UserError(
                f"{frames_path(stem)}: {stored} bytes for {count} frames of {features} features; it is damaged, remove "
                "the folder and run `features` again"
            )
        shape = (count, features)
        self.frames = np.memmap(frames_path(stem), STORED, "r", shape=shape) if count else np.empty(shape, STORED)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """(frames, features) float16."""
        return self.frames[self.offsets[index] : self.offsets[index + 1]]

    def lengths(self) -> np.ndarray:
        """Frames of every utterance, (utterances,) int32."""
        return np.diff(self.offsets).astype(np.int32)


class FrameWriter:
    """Appends utterances to a store that `write_frames` opened."""

    def __init__(self, frames, offsets):
        self.frames, self.offsets = frames, offsets
        self.count = self.utterances = 0
        self.offsets.write(np.zeros(1, "<i8").tobytes())

    def append(self, frames: np.ndarray) -> None:
        """Add one utterance, (frames, features)."""
        self.frames.write(np.ascontiguousarray(frames, dtype=STORED).tobytes())
        self.count += len(frames)
        self.utterances += 1
        self.offsets.write(np.array([self.count], "<i8").tobytes())


@contextlib.contextmanager
def write_frames(stem: Path) -> Iterator[FrameWriter]:
    """Open a store for appending; both files appear at the end, whole, or not at all."""
    stem = Path(stem)
    with atomic_write(frames_path(stem), "wb") as frames, atomic_write(frame_offsets_path(stem), "wb") as offsets:
        yield FrameWriter(frames, offsets)

"""Sequences as two memory-mapped files: all their elements in a row, and where each sequence begins.

The second file holds sequences + 1 little-endian int64, counted in elements. What an element is follows from the two
sizes, so a cut file is noticed. The pages are shared by all processes that read them, and nothing is loaded before it
is used.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from pipeline.core.advice import REPAIR
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write, reading
from pipeline.data.store.staging import nearest


class SequenceStore:
    """Read side; sequences are numbered from 0.

    Args:
        files: that of the elements and that of the beginnings.
        elements: the types that an element may have, each of another size.
        what: elements in words.

    Raises:
        UserError: a file is missing, or its size does not fit the other's.
    """

    def __init__(self, files: tuple[Path, Path], elements: Iterable[np.dtype], what: str):
        try:
            with reading(REPAIR):
                values, offsets = map(nearest, files)
                self.offsets: np.ndarray = np.memmap(offsets, dtype="<i8", mode="r")
                stored = values.stat().st_size
        except ValueError as error:  # empty, or not a whole number of offsets
            raise UserError(f"{offsets}: damaged; {REPAIR}") from error
        count = int(self.offsets[-1])
        fitting = [element for element in elements if stored == count * element.itemsize]
        if not fitting:
            raise UserError(f"{values}: damaged, {stored} bytes for {count} {what}; {REPAIR}")
        self.values = np.memmap(values, dtype=fitting[0], mode="r") if count else np.empty(0, fitting[0])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def lengths(self) -> np.ndarray:
        """Elements of every sequence, (sequences,) int32."""
        return np.diff(self.offsets).astype(np.int32)


class SequenceWriter:
    """Appends sequences to a store that `write_sequences` opened."""

    def __init__(self, values, offsets, dtype: np.dtype):
        self.values, self.offsets, self.dtype = values, offsets, dtype
        self.count = self.sequences = 0
        self.offsets.write(np.zeros(1, "<i8").tobytes())

    def append(self, flat: np.ndarray, lengths: Sequence[int] | np.ndarray | None = None) -> None:
        """Add sequences given as their concatenated elements and their lengths; None = they are one sequence."""
        lengths = [len(flat)] if lengths is None else lengths
        ends = self.count + np.cumsum(np.asarray(lengths, dtype="<i8"), dtype="<i8")
        self.values.write(np.ascontiguousarray(flat, dtype=self.dtype).tobytes())
        self.offsets.write(ends.astype("<i8").tobytes())
        self.count += len(flat)
        self.sequences += len(ends)


@contextlib.contextmanager
def write_sequences(files: tuple[Path, Path], dtype: np.dtype) -> Iterator[SequenceWriter]:
    """Open a store for appending; both files appear at the end, whole, or not at all."""
    values, offsets = files
    with atomic_write(values, "wb") as value_file, atomic_write(offsets, "wb") as offset_file:
        yield SequenceWriter(value_file, offset_file, dtype)


NARROW, WIDE = np.dtype("<u2"), np.dtype("<u4")
MAX_UINT16 = 1 << 16


def token_type(vocab_size: int) -> np.dtype:
    """The narrowest type that holds ids 0 … vocab_size - 1."""
    return NARROW if vocab_size <= MAX_UINT16 else WIDE


def token_files(stem: Path) -> tuple[Path, Path]:
    """Ids, and where each sentence begins."""
    return stem.with_name(stem.name + ".tokens"), stem.with_name(stem.name + ".offsets")


class TokenStore(SequenceStore):
    """Read side. `stem` is the path without `.tokens` and `.offsets`; sentences are numbered from 0.

    Raises:
        UserError: a file is missing, or its size does not fit the other's.
    """

    def __init__(self, stem: Path):
        super().__init__(token_files(Path(stem)), (NARROW, WIDE), "tokens")

    def repeats(self) -> np.ndarray:
        """Places of every sentence where a subword equals the one before, (sentences,) int64."""
        same = np.flatnonzero(self.values[1:] == self.values[:-1]) + 1
        sentence = np.searchsorted(self.offsets, same, side="right") - 1
        return np.bincount(sentence[same > self.offsets[sentence]], minlength=len(self))

    def padded(self, indices: np.ndarray, first: int | None, last: int | None, pad: int) -> np.ndarray:
        """The sentences of `indices` as rows (len(indices), longest) int64, with `first` and `last` around each."""
        begin, end = self.offsets[indices], self.offsets[indices + 1]
        lengths = (end - begin)[:, None]
        lead = int(first is not None)
        width = int(lengths.max(initial=0)) + lead + int(last is not None)
        column = np.arange(width) - lead
        inside = (column >= 0) & (column < lengths)
        rows = np.full(inside.shape, pad, dtype=np.int64)
        rows[inside] = self.values[(begin[:, None] + column)[inside]]
        if first is not None:
            rows[:, 0] = first
        if last is not None:
            np.put_along_axis(rows, lengths + lead, last, axis=1)
        return rows


def write_tokens(stem: Path, vocab_size: int) -> AbstractContextManager[SequenceWriter]:
    """Open a store for appending; both files appear at the end, whole, or not at all."""
    return write_sequences(token_files(Path(stem)), token_type(vocab_size))


STORED = np.dtype("<f2")
FEATURES, FRAMES_PER_SECOND = 40, 100
"""Of every corpus of speech (Cold Fusion, section 4.3)."""
NOISE_STEM = "noise"
"""The store of noises in the folder of an encoded speech corpus."""


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

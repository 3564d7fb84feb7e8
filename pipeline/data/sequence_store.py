"""Memory-mapped sequences of token ids and of speech features.

A store is two files: the elements of all sequences in a row, and the offsets where each sequence begins. The offsets
are sequences + 1 little-endian int64, counted in elements. The size of an element follows from the sizes of both
files, so a truncated file is noticed. All processes share the pages, and nothing is loaded before it is used.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from pipeline.core.errors import REPAIR, UserError
from pipeline.core.files import atomic_write, read_errors
from pipeline.data.encoded_files import frame_files, token_files
from pipeline.data.staging import staged_path


class SequenceStore:
    """Reader of a store; sequences are numbered from 0.

    Args:
        files: File of the elements and file of the offsets.
        elements: Types that an element may have, each of another size.
        what: Name of the elements in messages, plural.

    Raises:
        UserError: A file is missing, or its size does not fit the other file.
    """

    def __init__(self, files: tuple[Path, Path], elements: Iterable[np.dtype], what: str):
        try:
            with read_errors(REPAIR):
                values, offsets = map(staged_path, files)
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

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[index] for index in range(len(self)))

    def lengths(self) -> np.ndarray:
        """Return the number of elements of every sequence, (sequences,) int32."""
        lengths = np.empty(len(self), np.int32)
        return np.subtract(self.offsets[1:], self.offsets[:-1], out=lengths, casting="unsafe")


class SequenceWriter:
    """Writer that appends sequences to a store opened by `write_sequences`."""

    def __init__(self, values, offsets, dtype: np.dtype):
        self.values, self.offsets, self.dtype = values, offsets, dtype
        self.count = self.sequences = 0
        self.offsets.write(np.zeros(1, "<i8").tobytes())

    def append(self, flat: np.ndarray, lengths: Sequence[int] | np.ndarray | None = None) -> None:
        """Append sequences: their concatenated elements `flat`, and their `lengths`; None for a single one."""
        lengths = [len(flat)] if lengths is None else lengths
        ends = self.count + np.cumsum(np.asarray(lengths, dtype="<i8"), dtype="<i8")
        self.values.write(np.ascontiguousarray(flat, dtype=self.dtype).tobytes())
        self.offsets.write(ends.astype("<i8").tobytes())
        self.count += len(flat)
        self.sequences += len(ends)


@contextlib.contextmanager
def write_sequences(files: tuple[Path, Path], dtype: np.dtype) -> Iterator[SequenceWriter]:
    """Yield a writer of `files` of elements of a `dtype` and of offsets; both appear at the end, or neither does."""
    values, offsets = files
    with atomic_write(values, "wb") as value_file, atomic_write(offsets, "wb") as offset_file:
        yield SequenceWriter(value_file, offset_file, dtype)


NARROW, WIDE = np.dtype("<u2"), np.dtype("<u4")
MAX_UINT16 = 1 << 16


def token_type(vocab_size: int) -> np.dtype:
    """Return the narrowest type that holds ids 0 … vocab_size - 1."""
    return NARROW if vocab_size <= MAX_UINT16 else WIDE


class TokenStore(SequenceStore):
    """Ids of one side of an encoded split, little-endian uint16, or uint32 for large vocabularies.

    Args:
        stem: Path without `.tokens` and `.offsets`.

    Raises:
        UserError: A file is missing, or its size does not fit the other file.
    """

    def __init__(self, stem: Path):
        super().__init__(token_files(Path(stem)), (NARROW, WIDE), "tokens")

    def repeats(self) -> np.ndarray:
        """Count the tokens of every sentence that equal the token before, (sentences,) int64."""
        same = np.flatnonzero(self.values[1:] == self.values[:-1]) + 1
        sentence = np.searchsorted(self.offsets, same, side="right") - 1
        return np.bincount(sentence[same > self.offsets[sentence]], minlength=len(self))

    def padded(self, indices: np.ndarray, first: int | None, last: int | None, pad: int) -> np.ndarray:
        """Return sentences `indices` (B,) as rows (B, longest) int64, with `pad` after the end.

        `first` and `last` are ids around each sentence; None adds none.
        """
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


def write_tokens(stem: Path, vocab_size: int) -> contextlib.AbstractContextManager[SequenceWriter]:
    """Open the token store `stem` for ids below `vocab_size`; both files appear at the end, or neither does."""
    return write_sequences(token_files(Path(stem)), token_type(vocab_size))


FRAME_DTYPE = np.dtype("<f2")
FEATURES, FRAMES_PER_SECOND = 40, 100
"""Log-mel energies of a frame, and frame rate (Cold Fusion, section 4.3)."""


class FrameStore(SequenceStore):
    """Log-mel features of an encoded split, (frames, features) little-endian float16 for each utterance.

    Args:
        stem: Path without `.frames` and `.frames.offsets`.
        features: Number of features of a frame.

    Raises:
        UserError: A file is missing, or its size does not fit the other file.
    """

    def __init__(self, stem: Path, features: int):
        frame = np.dtype((FRAME_DTYPE, (features,)))
        super().__init__(frame_files(Path(stem)), [frame], f"frames of {features} features")


def write_frames(stem: Path) -> contextlib.AbstractContextManager[SequenceWriter]:
    """Open a frame store for appending (frames, features) arrays; both files appear at the end, or neither does."""
    return write_sequences(frame_files(Path(stem)), FRAME_DTYPE)

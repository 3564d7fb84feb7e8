"""Sequences as two memory-mapped files: all their elements in a row, and where each sequence begins.

The second file holds sequences + 1 little-endian int64, counted in elements. What an element is follows from the two
sizes, so a cut file is noticed. The pages are shared by all processes that read them, and nothing is loaded before it
is used.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from pipeline.core.advice import REPAIR
from pipeline.core.errors import UserError
from pipeline.core.files import atomic_write, reading
from pipeline.core.patience import patiently
from pipeline.core.sha256 import sha256_file, sha256_json
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


def digest_of(stores: Iterable[tuple[Path, Path]]) -> str:
    """Of all files of the stores of an encoded corpus, as its record says it. Raises UserError as `patiently` does."""
    files = [path for store in stores for path in store]
    return sha256_json({path.name: patiently(path, partial(sha256_file, path)) for path in files})

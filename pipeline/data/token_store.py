"""One side of an encoded split as two memory-mapped files: all its ids in a row, and where each sentence begins.

`<stem>.tokens` holds the ids as little-endian uint16, or uint32 when the vocabulary needs it; `<stem>.offsets` holds
sentences + 1 little-endian int64. The width follows from the two sizes, so a cut file is noticed. The pages are shared
by all processes that read them, and nothing is loaded before it is used.
"""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from pipeline.errors import UserError
from pipeline.files import atomic_write

MAX_UINT16 = 1 << 16


def token_type(vocab_size: int) -> np.dtype:
    """The narrowest type that holds ids 0 … vocab_size - 1."""
    return np.dtype("<u2" if vocab_size <= MAX_UINT16 else "<u4")


def tokens_path(stem: Path) -> Path:
    return stem.with_name(stem.name + ".tokens")


def offsets_path(stem: Path) -> Path:
    return stem.with_name(stem.name + ".offsets")


class TokenStore:
    """Read side. `stem` is the path without `.tokens` and `.offsets`; sentences are numbered from 0.

    Raises:
        UserError: a file is missing, or its size does not fit the other's.
    """

    def __init__(self, stem: Path):
        stem = Path(stem)
        try:
            self.offsets = np.memmap(offsets_path(stem), dtype="<i8", mode="r")
            stored = tokens_path(stem).stat().st_size
        except FileNotFoundError as error:
            raise UserError(f"{error.filename}: no such file; run the stage `encode` first") from error
        except ValueError as error:  # empty, or not a whole number of offsets
            raise UserError(f"{offsets_path(stem)}: damaged; remove the folder and run `encode` again") from error
        count = int(self.offsets[-1])
        if stored not in (2 * count, 4 * count):
            raise UserError(
                f"{tokens_path(stem)}: {stored} bytes for {count} tokens; it is damaged, remove the folder and run "
                "`encode` again"
            )
        self.dtype = np.dtype("<u2" if stored == 2 * count else "<u4")
        self.tokens = np.memmap(tokens_path(stem), dtype=self.dtype, mode="r") if count else np.empty(0, self.dtype)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.tokens[self.offsets[index] : self.offsets[index + 1]]

    def lengths(self) -> np.ndarray:
        """Subwords of every sentence, (sentences,) int32."""
        return np.diff(self.offsets).astype(np.int32)

    def repeats(self) -> np.ndarray:
        """Places of every sentence where a subword equals the one before, (sentences,) int64."""
        same = np.flatnonzero(self.tokens[1:] == self.tokens[:-1]) + 1
        sentence = np.searchsorted(self.offsets, same, side="right") - 1
        within = same > self.offsets[sentence]
        return np.bincount(sentence[within], minlength=len(self))

    def padded(self, indices: np.ndarray, first: int | None, last: int | None, pad: int) -> np.ndarray:
        """The sentences of `indices` as rows (len(indices), longest) int64, with `first` and `last` around each."""
        begin, end = self.offsets[indices], self.offsets[indices + 1]
        lengths = (end - begin)[:, None]
        lead = int(first is not None)
        width = int(lengths.max(initial=0)) + lead + int(last is not None)
        column = np.arange(width) - lead
        inside = (column >= 0) & (column < lengths)
        rows = np.full(inside.shape, pad, dtype=np.int64)
        rows[inside] = self.tokens[(begin[:, None] + column)[inside]]
        if first is not None:
            rows[:, 0] = first
        if last is not None:
            np.put_along_axis(rows, lengths + lead, last, axis=1)
        return rows


class TokenWriter:
    """Appends sentences to a store that `write_tokens` opened."""

    def __init__(self, tokens, offsets, dtype: np.dtype):
        self.tokens, self.offsets, self.dtype = tokens, offsets, dtype
        self.count = self.sentences = 0
        self.offsets.write(np.zeros(1, "<i8").tobytes())

    def append(self, flat: np.ndarray, lengths: Iterable[int]) -> None:
        """Add sentences given as their concatenated ids and their lengths."""
        ends = self.count + np.cumsum(np.asarray(lengths, dtype="<i8"), dtype="<i8")
        self.tokens.write(np.ascontiguousarray(flat, dtype=self.dtype).tobytes())
        self.offsets.write(ends.astype("<i8").tobytes())
        self.count += len(flat)
        self.sentences += len(ends)


@contextlib.contextmanager
def write_tokens(stem: Path, vocab_size: int) -> Iterator[TokenWriter]:
    """Open a store for appending; both files appear at the end, whole, or not at all."""
    stem = Path(stem)
    with atomic_write(tokens_path(stem), "wb") as tokens, atomic_write(offsets_path(stem), "wb") as offsets:
        yield TokenWriter(tokens, offsets, token_type(vocab_size))

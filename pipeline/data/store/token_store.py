"""One side of an encoded split: `<stem>.tokens` holds all its ids in a row, `<stem>.offsets` where each line begins.

Ids are little-endian uint16, or uint32 when the vocabulary needs it.
"""

from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from pipeline.data.store.sequence_store import SequenceStore, SequenceWriter, write_sequences

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

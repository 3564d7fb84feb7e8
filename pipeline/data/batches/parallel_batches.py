"""Batches of sentence pairs of like length, each a pure function of (seed, step).

The pairs are put into cells of like target and source length, and the cells in an order in which neighbours are of
like size. An epoch permutes the pairs inside every cell; the cells themselves stay, so the places where the order is
cut into updates, and their number, are those of every epoch. The order of the updates is permuted as well. Random
numbers come from Philox, a counter-based generator keyed by (seed, epoch): an update draws those of its own places
alone, and a resumed run finds its place in the data by computing it.

An update holds at most `tokens_per_update` positions per side, padding counted, or `sentences_per_update` pairs. What
it holds depends neither on `micro_batch_tokens`, the memory bound by which it is split, nor on the number of processes
that share the parts.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from pipeline.config import TrainingConfig
from pipeline.core.errors import UserError
from pipeline.core.symbols import EOS, PAD
from pipeline.data.batches.base import Batch, EncodedSplit, TrainingBatches, enlarged, random_keys
from pipeline.data.store.sequence_store import TokenStore


@dataclass(frozen=True)
class TextBatch(Batch):
    """B sentence pairs, padded with PAD: src (B, S) ends in EOS."""

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor

    known: ClassVar[tuple[str, ...]] = ("real_targets", "padded")
    known_on_grid: ClassVar[tuple[str, ...]] = (*Batch.known_on_grid, "padded")

    @cached_property
    def padded(self) -> bool:
        return bool((self.src == PAD).any())

    @property
    def src_mask(self) -> Tensor:
        """(B, S) bool, True at real positions."""
        return self.src != PAD

    @property
    def expected_length(self) -> Tensor:
        """(B,): symbols that an output may have before it counts as long, EOS counted on neither side."""
        return self.src_mask.sum(1) - 1

    @property
    def src_shape(self) -> tuple[int, int]:
        """Sentences and source positions of the longest."""
        return self.src.shape[0], self.src.shape[1]

    def _fitted(self, rows: int, source: int, target: int) -> "TextBatch":
        """A sentence that is added is an EOS: attention has something to look at."""
        src = enlarged(self.src, rows, source)
        src[len(self.src) :, 0] = EOS
        return TextBatch(src, enlarged(self.tgt_in, rows, target), enlarged(self.tgt_out, rows, target))


class ParallelSplit(EncodedSplit):
    """Both sides of one split of an encoded corpus; `src_lengths`, `tgt_lengths` (pairs,) count EOS."""

    def __init__(self, corpus_folder: Path, split: str):
        super().__init__(corpus_folder, split)
        self.src = TokenStore(self.folder / f"{split}.src")
        if len(self.src) != len(self.tgt):
            raise UserError(
                f"{self.name}: {len(self.src)} source but {len(self.tgt)} target sentences; run `encode` again"
            )
        self.src_lengths = self.src.lengths() + 1

    def longest(self, indices: np.ndarray) -> int:
        return int(max(self.src_lengths[indices].max(), self.tgt_lengths[indices].max()))

    def batch(self, indices: np.ndarray) -> TextBatch:
        src = self.src.padded(indices, first=None, last=EOS, pad=PAD)
        return TextBatch(torch.from_numpy(src), *self.targets(indices))


class ParallelBatches(TrainingBatches[ParallelSplit, TextBatch]):
    """The updates of a training run on sentence pairs, those with more than `max_length` subwords on a side left out.

    Raises:
        UserError: nothing is left to train on, or a single pair exceeds a budget.
    """

    def __init__(self, pairs: ParallelSplit, training: TrainingConfig, seed: int):
        self.pairs, self.micro_batch_positions, self.seed = pairs, training.micro_batch_tokens, seed
        max_length, tokens, sentences = training.max_length, training.tokens_per_update, training.sentences_per_update
        fits = np.maximum(self.pairs.src_lengths, self.pairs.tgt_lengths) <= max_length + 1
        if not fits.any():
            raise UserError(f"{self.pairs.name}: no pair of at most {max_length} subwords per side; raise `max_length`")
        kept, self.left_out = np.flatnonzero(fits).astype(np.uint32), int(len(fits) - fits.sum())
        src_lengths, tgt_lengths = self.pairs.src_lengths[kept], self.pairs.tgt_lengths[kept]
        longest = self.pairs.longest(kept)
        for key, budget in (("tokens_per_update", tokens), ("micro_batch_tokens", self.micro_batch_positions)):
            self.pairs.check_budget(f"a pair has {longest} subwords on a side", longest, key, budget, "max_length")
        order, starts = order_by_cell(cells(src_lengths, tgt_lengths), seed)
        self.order, self.sequences = kept[order], len(kept)
        self.cell_bounds = np.append(starts, len(order))
        widths = np.stack([np.maximum.reduceat(lengths[order], starts) for lengths in (src_lengths, tgt_lengths)], 1)
        self.cuts, self.step_widths = cut_into_steps(self.cell_bounds, widths, tokens, sentences)
        self._known_order = -1, np.empty(0, np.int64)
        real = int(src_lengths.sum() + tgt_lengths.sum())
        self.padding = 1 - real / int((np.diff(self.cuts) * self.step_widths.sum(axis=1)).sum())

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def sequences_of(self, step: int) -> np.ndarray:
        """Numbers of the pairs in global update `step`, those of like length together."""
        epoch, place = divmod(step, len(self))
        if self._known_order[0] != epoch:  # kept, because many updates of one epoch follow each other
            self._known_order = epoch, np.argsort(random_keys(self.seed, epoch, 0, len(self), stream=1))
        update = self._known_order[1][place]
        return self._pairs_between(epoch, *self.cuts[update : update + 2])

    def heaviest_step(self) -> np.ndarray:
        """By the memory that attention needs."""
        width = self.step_widths.max(axis=1)
        rows = np.minimum(np.diff(self.cuts), self.micro_batch_positions // width)
        place = int(np.argmax(rows * width**2))
        return self._pairs_between(0, *self.cuts[place : place + 2])

    def _pairs_between(self, epoch: int, begin: int, end: int) -> np.ndarray:
        """The pairs that epoch `epoch` puts at places begin … end - 1 of the order."""
        first_cell = np.searchsorted(self.cell_bounds, begin, side="right") - 1
        last_cell = np.searchsorted(self.cell_bounds, end, side="left")
        bounds = self.cell_bounds[first_cell : last_cell + 1]
        first, last = int(bounds[0]), int(bounds[-1])
        cell = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        mixed = np.lexsort((random_keys(self.seed, epoch, first, last, stream=0), cell))
        return self.order[first:last][mixed[begin - first : end - first]].astype(np.int64)


# Relative widths of the cells: narrow enough that little is padded, wide enough that an update meets new neighbours.
TGT_CELL_WIDTH, SRC_CELL_WIDTH = 1 / 12, 1 / 6
LARGEST_CELL = 1 << 14


def cells(src_lengths: np.ndarray, tgt_lengths: np.ndarray) -> np.ndarray:
    """The cell of each pair, (pairs,) uint16: a target bucket times a source bucket, numbered in a serpentine."""
    src_bucket = bucket_table(int(src_lengths.max()), SRC_CELL_WIDTH)[src_lengths]
    tgt_bucket = bucket_table(int(tgt_lengths.max()), TGT_CELL_WIDTH)[tgt_lengths]
    columns = int(src_bucket.max()) + 1
    column = np.where(tgt_bucket % 2, columns - 1 - src_bucket, src_bucket)
    return (tgt_bucket * columns + column).astype(np.uint16)


def order_by_cell(cell_of_pair: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs, cell after cell, (pairs,) uint32, and the first place of every cell.

    Large cells are cut, so that mixing one stays cheap; their pairs are shuffled before, so that each part draws from
    all sources of the corpus.
    """
    shuffled = np.random.Generator(np.random.Philox(seed)).permutation(np.arange(len(cell_of_pair), dtype=np.uint32))
    order = shuffled[np.argsort(cell_of_pair[shuffled], kind="stable")]
    changes = np.flatnonzero(np.diff(cell_of_pair[order].astype(np.int32), prepend=-1))
    return order, np.union1d(changes, np.arange(0, len(order), LARGEST_CELL))


def bucket_table(longest: int, width: float) -> np.ndarray:
    """Bucket of each length 0 … longest; a bucket that begins at length n spans max(1, n * width) lengths."""
    table = np.zeros(longest + 1, dtype=np.int32)
    begin, bucket = 1, 0
    while begin <= longest:
        end = begin + max(1, int(begin * width))
        table[begin:end] = bucket
        begin, bucket = end, bucket + 1
    return table


def cut_into_steps(
    bounds: np.ndarray, widths: np.ndarray, tokens: int | None, sentences: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Where the places are cut into updates of at most so many `sentences`, or else `tokens` per side; see `cut`."""
    if sentences is None:
        if tokens is None:
            raise ValueError("an update is counted in tokens or in sentences")
        return even_cuts(bounds, widths, tokens)
    places = int(bounds[-1])
    cuts = np.linspace(0, places, -(-places // sentences) + 1).astype(np.int64)
    first = np.searchsorted(bounds, cuts[:-1], side="right") - 1
    last = np.searchsorted(bounds, cuts[1:], side="left")
    return cuts, np.array([widths[begin:end].max(axis=0) for begin, end in zip(first, last, strict=True)])


def even_cuts(bounds: np.ndarray, widths: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """`cut` with the smallest budget that gives no more updates than `budget` does: no small one is left over."""
    most = len(cut(bounds, widths, budget)[0])
    low, high = int(widths.max()), budget
    while low < high:
        middle = (low + high) // 2
        if len(cut(bounds, widths, middle)[0]) <= most:
            high = middle
        else:
            low = middle + 1
    return cut(bounds, widths, high)


def cut(bounds: np.ndarray, widths: np.ndarray, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut the places into updates of at most `budget` padded positions per side, filled greedily.

    Args:
        bounds: (cells + 1,) first place of each cell, and the number of places.
        widths: (cells, 2) longest source and target of each cell.

    Returns:
        cuts (updates + 1,) and widths (updates, 2): longest source and target that may occur in each update.
    """
    cuts, found = [0], []
    src_width = tgt_width = 0
    for start, end, src, tgt in zip(bounds[:-1].tolist(), bounds[1:].tolist(), *widths.T.tolist(), strict=True):
        wider = max(src_width, src), max(tgt_width, tgt)
        room = cuts[-1] + budget // max(wider)  # where an update of these widths would be full
        if room <= start:  # full without any pair of this cell
            cuts.append(start)
            found.append((src_width, tgt_width))
            wider, room = (src, tgt), start + budget // max(src, tgt)
        while room < end:
            cuts.append(room)
            found.append(wider)
            wider, room = (src, tgt), room + budget // max(src, tgt)
        src_width, tgt_width = wider
    cuts.append(int(bounds[-1]))
    found.append((src_width, tgt_width))
    return np.array(cuts), np.array(found)

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
from pipeline.data.batches.random_keys import random_keys
from pipeline.data.batches.split_batches import Batch, EncodedSplit, UpdateBatches, enlarged
from pipeline.data.batches.update_cuts import cells, order_by_cell, update_cuts
from pipeline.data.store.token_store import TokenStore


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


class TrainingBatches(UpdateBatches[ParallelSplit, TextBatch]):
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
        self.cuts, self.update_widths = update_cuts(self.cell_bounds, widths, tokens, sentences)
        self._known_order = -1, np.empty(0, np.int64)
        real = int(src_lengths.sum() + tgt_lengths.sum())
        self.padding = 1 - real / int((np.diff(self.cuts) * self.update_widths.sum(axis=1)).sum())

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def pairs_of(self, step: int) -> np.ndarray:
        """Numbers of the pairs in global update `step`, those of like length together."""
        epoch, place = divmod(step, len(self))
        if self._known_order[0] != epoch:  # kept, because many updates of one epoch follow each other
            self._known_order = epoch, np.argsort(random_keys(self.seed, epoch, 0, len(self), stream=1))
        update = self._known_order[1][place]
        return self._pairs_between(epoch, *self.cuts[update : update + 2])

    def heaviest(self) -> np.ndarray:
        """By the memory that attention needs."""
        width = self.update_widths.max(axis=1)
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

"""Batches of sentence pairs of similar length, a pure function of (seed, step).

Pairs are grouped into cells of similar target and source length, and neighbouring cells are of similar size. An epoch
permutes the pairs within every cell; the cells stay. So the bounds of the steps, and their number, are the same in
every epoch. The order of the steps is permuted too. Random numbers come from Philox, a counter-based generator keyed
by (seed, epoch): a step draws only the numbers of its own places, and a resumed run computes its place in the data.

A step holds at most `tokens_per_update` positions per side, padding included, or `sentences_per_update` pairs. Its
content depends neither on `micro_batch_tokens`, the memory bound that splits it, nor on the number of processes.
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
from pipeline.data.batches.base import Batch, EncodedSplit, TrainingBatches, pad_to
from pipeline.data.batches.steps import cut_into_steps, group_into_cells, heaviest_group, random_keys, step_order
from pipeline.data.sequence_store import TokenStore
from pipeline.models.settings import EOS, PAD


@dataclass(frozen=True)
class TextBatch(Batch):
    """B sentence pairs, padded with PAD: src (B, S) ends in EOS."""

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor

    host_values: ClassVar[tuple[str, ...]] = ("real_targets", "padded")
    host_values_on_grid: ClassVar[tuple[str, ...]] = (*Batch.host_values_on_grid, "padded")

    @cached_property
    def padded(self) -> bool:
        """True if the source is padded."""
        return bool((self.src == PAD).any())

    @property
    def src_mask(self) -> Tensor:
        """Mask (B, S), True at real source positions."""
        return self.src != PAD

    @property
    def expected_length(self) -> Tensor:
        """Number (B,) of symbols after which an output counts as long, EOS excluded on both sides."""
        return self.src_mask.sum(1) - 1

    @property
    def src_shape(self) -> tuple[int, int]:
        """Number of sentences, and of source positions of the longest."""
        return self.src.shape[0], self.src.shape[1]

    def _fitted(self, rows: int, source: int, target: int) -> "TextBatch":
        """Pad with sentences that consist of EOS, so that attention has a position to attend to."""
        src = pad_to(self.src, rows, source)
        src[len(self.src) :, 0] = EOS
        return TextBatch(src, pad_to(self.tgt_in, rows, target), pad_to(self.tgt_out, rows, target))


class ParallelSplit(EncodedSplit):
    """Both sides of one split of an encoded corpus.

    Attributes:
        src_lengths: Source lengths, EOS included, (pairs,).
        tgt_lengths: Target lengths, EOS included, (pairs,).

    Raises:
        UserError: The sides differ in length.
    """

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
    """Training batches of sentence pairs, without those that have more than `max_length` subwords on a side.

    Raises:
        UserError: No pair is left, or a single pair exceeds a budget.
    """

    def __init__(self, pairs: ParallelSplit, training: TrainingConfig, seed: int):
        self.pairs, self.micro_batch_positions, self.seed = pairs, training.micro_batch_tokens, seed
        max_length, tokens, sentences = training.max_length, training.tokens_per_update, training.sentences_per_update
        fits = np.maximum(self.pairs.src_lengths, self.pairs.tgt_lengths) <= max_length + 1
        if not fits.any():
            raise UserError(
                f"{self.pairs.name}: no pair has at most {max_length} subwords per side; raise `max_length`"
            )
        self.sequences, self.left_out = int(fits.sum()), int(len(fits) - fits.sum())
        src_lengths, tgt_lengths = self.pairs.src_lengths[fits], self.pairs.tgt_lengths[fits]
        longest = self.longest = int(max(src_lengths.max(), tgt_lengths.max()))
        for key, budget in (("tokens_per_update", tokens), ("micro_batch_tokens", self.micro_batch_positions)):
            self.pairs.check_budget(f"a pair has {longest} subwords on a side", longest, key, budget, "max_length")
        order, self.cell_bounds, widths = group_into_cells(src_lengths, tgt_lengths)
        self.order = np.flatnonzero(fits).astype(np.uint32)[order] if self.left_out else order
        self.cuts, self.step_widths = cut_into_steps(self.cell_bounds, widths, tokens, sentences)
        real = int(src_lengths.sum() + tgt_lengths.sum())
        self.padding = 1 - real / int((np.diff(self.cuts) * self.step_widths.sum(axis=1)).sum())

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def sequences_of(self, step: int) -> np.ndarray:
        """Return the indices of the pairs of global step `step` (from 0), pairs of similar length together."""
        epoch, place = divmod(step, len(self))
        number = step_order(self.seed, epoch, len(self))[place]
        return self._pairs_between(epoch, *self.cuts[number : number + 2])

    def heaviest_step(self) -> np.ndarray:
        """Return the pairs of a step with as many attention weights in a micro-batch as any step of any epoch."""
        counts, longest = np.diff(self.cuts), self.step_widths.max(axis=1)
        bounds = np.minimum(counts * longest, self.micro_batch_positions) * longest
        heaviest, found = 0, self.order[:0]
        for place in np.argsort(-bounds, kind="stable"):
            if bounds[place] <= heaviest:
                break
            cells = self._cells_between(*self.cuts[place : place + 2])
            pairs = self.order[cells[0] : cells[-1]]
            lengths = np.maximum(self.pairs.src_lengths[pairs], self.pairs.tgt_lengths[pairs])
            chosen, weights = heaviest_group(lengths, int(counts[place]), self.micro_batch_positions)
            if weights > heaviest:
                heaviest, found = weights, pairs[chosen]
        return found.astype(np.int64)

    def _cells_between(self, begin: int, end: int) -> np.ndarray:
        """Return the bounds of the cells that have places begin … end - 1 of the order."""
        first_cell = np.searchsorted(self.cell_bounds, begin, side="right") - 1
        last_cell = np.searchsorted(self.cell_bounds, end, side="left")
        return self.cell_bounds[first_cell : last_cell + 1]

    def _pairs_between(self, epoch: int, begin: int, end: int) -> np.ndarray:
        """Return the pairs that epoch `epoch` puts at places begin … end - 1 of the order."""
        bounds = self._cells_between(begin, end)
        first, last = int(bounds[0]), int(bounds[-1])
        cell = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        mixed = np.lexsort((random_keys(self.seed, epoch, first, last, stream=0), cell))
        return self.order[first:last][mixed[begin - first : end - first]].astype(np.int64)

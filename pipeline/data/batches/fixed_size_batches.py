"""Batches with a fixed number of sequences per step, a pure function of (seed, step).

An epoch shuffles the sequences, sorts each stretch of `steps.POOL` steps by length and permutes the steps. So
neighbours in a step are of similar length, and no two epochs have the same steps. The first epoch may go from short to
long instead (SortaGrad, Deep Speech 2, section 3.3; Cold Fusion, section 4.3). The sizes of the steps are the same in
every epoch.
"""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from pipeline.config import TrainingConfig
from pipeline.core.errors import UserError
from pipeline.data.batches.base import Batch, BatchT, EncodedSplit, SplitT, TrainingBatches, pad_to
from pipeline.data.batches.steps import FixedSizeSteps, heaviest_group, random_keys


class FixedSizeBatches(FixedSizeSteps, TrainingBatches[SplitT, BatchT]):
    """Training batches of `sentences_per_update` sequences per step.

    Args:
        pairs: Split to train on.
        kept: Indices of the sequences to train on; at least one.
        training: Settings of the training.
        micro_batch_positions: Maximum number of positions of a micro-batch, padding included.
        seed: Seed of the run.
    """

    def __init__(
        self, pairs: SplitT, kept: np.ndarray, training: TrainingConfig, micro_batch_positions: int, seed: int
    ):
        assert training.sentences_per_update, "checked when the settings were read"
        lengths, sorted_first = pairs.src_lengths[kept], training.sorted_first_epoch
        super().__init__(kept, lengths, training.sentences_per_update, seed, sorted_first)
        self.pairs, self.micro_batch_positions, self.sequences = pairs, micro_batch_positions, len(kept)
        self.longest = self.pairs.longest(kept)

    def heaviest_step(self) -> np.ndarray:
        """Return the sequences of a step with as many attention weights in a micro-batch as any step of any epoch."""
        counts = np.unique(np.diff(self.cuts)).tolist()
        groups = (heaviest_group(self.lengths, count, self.micro_batch_positions) for count in counts)
        return self.numbers[max(groups, key=lambda group: group[1])[0]]


def select_share(fits: np.ndarray, share: float, seed: int, fault: str) -> tuple[np.ndarray, int]:
    """Select a share of the sequences that fit.

    Args:
        fits: True for each sequence that fits, (N,) bool.
        share: Share of the fitting sequences to keep, above 0 and at most 1.
        seed: Seed of the share.
        fault: Message if no sequence fits.

    Returns:
        Indices of the selected sequences in rising order, and the number of sequences that do not fit.

    Raises:
        UserError: No sequence fits.
    """
    if not fits.any():
        raise UserError(fault)
    return random_share(np.flatnonzero(fits), share, seed), int(len(fits) - fits.sum())


def random_share(numbers: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return a `share` of rising `numbers` (N,), at least one: those with the smallest random keys of a `seed`."""
    if share >= 1:
        return numbers
    keys = random_keys(seed, 0, 0, int(numbers[-1]) + 1, stream=3)[numbers]
    return np.sort(numbers[np.argsort(keys)[: max(1, round(share * len(numbers)))]])


@dataclass(frozen=True)
class TextOnlyBatch(Batch):
    """B sentences without a source."""

    tgt_in: Tensor
    tgt_out: Tensor

    @property
    def src_shape(self) -> tuple[int, int]:
        """Number of sentences, and no source position."""
        return len(self.tgt_out), 0

    def _fitted(self, rows: int, source: int, target: int) -> "TextOnlyBatch":
        return TextOnlyBatch(pad_to(self.tgt_in, rows, target), pad_to(self.tgt_out, rows, target))


class TextOnlySplit(EncodedSplit):
    """The target side of one split of an encoded corpus, speech or text."""

    def batch(self, indices: np.ndarray) -> TextOnlyBatch:
        """Return the sentences `indices` (B,) as a batch."""
        return TextOnlyBatch(*self.targets(indices))


class TextOnlyBatches(FixedSizeBatches[TextOnlySplit, TextOnlyBatch]):
    """Training batches of sentences without a source, for language models.

    Sentences of more than `max_length` symbols are left out.

    Raises:
        UserError: No sentence is left, or a single sentence exceeds `micro_batch_tokens`.
    """

    def __init__(self, pairs: TextOnlySplit, training: TrainingConfig, seed: int):
        fits = pairs.tgt_lengths <= training.max_length + 1
        fault = f"{pairs.name}: no sentence has at most {training.max_length} symbols; raise `max_length`"
        kept, self.left_out = select_share(fits, training.train_share, seed, fault)
        longest = pairs.tgt_lengths[kept].max()
        found = f"a sentence has {longest} symbols"
        pairs.check_budget(found, longest, "micro_batch_tokens", training.micro_batch_tokens, "max_length")
        super().__init__(pairs, kept, training, training.micro_batch_tokens, seed)

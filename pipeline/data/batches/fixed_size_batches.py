"""Updates of so many sequences of like length each: which sequences update n has, as a pure function of (seed, n).

An epoch shuffles the sequences, sorts each stretch of POOL updates by length and permutes the updates: neighbours in an
update are of like length, and no two epochs have the same updates. The first epoch may go from short to long instead
(SortaGrad, Deep Speech 2, section 3.3; Cold Fusion, section 4.3). Sizes of updates are those of every epoch.
"""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from pipeline.config import TrainingConfig
from pipeline.core.errors import UserError
from pipeline.data.batches.base import AnyBatch, Batch, EncodedSplit, Split, TrainingBatches, enlarged, random_keys

POOL = 32


class FixedSizeSteps:
    """The updates over `numbers`, sequences of length `lengths` each; `len()` is their number in an epoch.

    Args:
        numbers: (N,) of the sequences; at least one.
        lengths: (N,) of each.
        per_update: sequences of an update; where N is no multiple, the last ones have one fewer.
        sorted_first: the first epoch goes from short to long.
    """

    def __init__(self, numbers: np.ndarray, lengths: np.ndarray, per_update: int, seed: int, sorted_first: bool):
        self.numbers, self.lengths = numbers.astype(np.int64), lengths.astype(np.int64)
        self.seed, self.sorted_first = seed, sorted_first
        updates = -(-len(numbers) // per_update)
        self.cuts = np.arange(updates + 1) * len(numbers) // updates
        self._known = -1, np.empty(0, np.int64), np.empty(0, np.int64)
        self.padding = self._padding(self.shuffled(1))

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def sequences_of(self, step: int) -> np.ndarray:
        """The sequences of global update `step` (from 0), the shortest first."""
        epoch, place = divmod(step, len(self))
        if self._known[0] != epoch:  # kept, because many updates of one epoch follow each other
            self._known = epoch, *self._order(epoch)
        _, order, updates = self._known
        begin, end = self.cuts[updates[place] : updates[place] + 2]
        return self.numbers[order[begin:end]]

    def heaviest_step(self) -> np.ndarray:
        """The sequences of the update that is longest in an epoch from short to long."""
        return self.numbers[np.argsort(self.lengths, kind="stable")[self.cuts[-2] :]]

    def _order(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Places of the sequences, update after update, and the order in which the updates come."""
        if epoch == 0 and self.sorted_first:
            return np.argsort(self.lengths, kind="stable"), np.arange(len(self))
        return self.shuffled(epoch), np.argsort(random_keys(self.seed, epoch, 0, len(self), stream=1))

    def shuffled(self, epoch: int) -> np.ndarray:
        """Shuffled, then sorted by length within each stretch of POOL updates."""
        shuffled = np.argsort(random_keys(self.seed, epoch, 0, len(self.numbers), stream=0))
        stretch = np.searchsorted(self.cuts[POOL::POOL], np.arange(len(shuffled)), side="right")
        return shuffled[np.lexsort((self.lengths[shuffled], stretch))]

    def _padding(self, order: np.ndarray) -> float:
        """Share of padding in the positions of an epoch of shuffled updates."""
        longest = np.maximum.reduceat(self.lengths[order], self.cuts[:-1])
        return 1 - float(self.lengths.sum() / (longest * np.diff(self.cuts)).sum())


class FixedSizeBatches(FixedSizeSteps, TrainingBatches[Split, AnyBatch]):
    """The updates of a training run, of `sentences_per_update` each; the last ones of an epoch may have one fewer.

    kept: numbers of the sequences to train on; at least one.
    """

    def __init__(self, pairs: Split, kept: np.ndarray, training: TrainingConfig, micro_batch_positions: int, seed: int):
        assert training.sentences_per_update, "checked when the settings were read"
        lengths, sorted_first = pairs.src_lengths[kept], training.sorted_first_epoch
        super().__init__(kept, lengths, training.sentences_per_update, seed, sorted_first)
        self.pairs, self.micro_batch_positions, self.sequences = pairs, micro_batch_positions, len(kept)


def chosen(fits: np.ndarray, share: float, seed: int, fault: str) -> tuple[np.ndarray, int]:
    """Numbers of a share of the sequences that fit, and how many do not. Raises UserError, a `fault`, if none does."""
    if not fits.any():
        raise UserError(fault)
    return random_share(np.flatnonzero(fits), share, seed), int(len(fits) - fits.sum())


def random_share(numbers: np.ndarray, share: float, seed: int) -> np.ndarray:
    """A share of `numbers`, in rising order: those of the smallest random keys, so that samples are nested."""
    if share >= 1:
        return numbers
    keys = random_keys(seed, 0, 0, int(numbers[-1]) + 1, stream=3)[numbers]
    return np.sort(numbers[np.argsort(keys)[: max(1, round(share * len(numbers)))]])


@dataclass(frozen=True)
class TextOnlyBatch(Batch):
    """B sentences."""

    tgt_in: Tensor
    tgt_out: Tensor

    @property
    def src_shape(self) -> tuple[int, int]:
        """Sentences, and no source position."""
        return len(self.tgt_out), 0

    def _fitted(self, rows: int, source: int, target: int) -> "TextOnlyBatch":
        return TextOnlyBatch(enlarged(self.tgt_in, rows, target), enlarged(self.tgt_out, rows, target))


class TextOnlySplit(EncodedSplit):
    """The target side of one split of an encoded corpus, speech or text."""

    def batch(self, indices: np.ndarray) -> TextOnlyBatch:
        return TextOnlyBatch(*self.targets(indices))


class TextOnlyBatches(FixedSizeBatches[TextOnlySplit, TextOnlyBatch]):
    """The updates of a training run on sentences, those of more than `max_length` symbols left out.

    Raises:
        UserError: nothing is left to train on, or a single sentence exceeds `micro_batch_tokens`.
    """

    def __init__(self, pairs: TextOnlySplit, training: TrainingConfig, seed: int):
        fits = pairs.tgt_lengths <= training.max_length + 1
        fault = f"{pairs.name}: no sentence of at most {training.max_length} symbols; raise `max_length`"
        kept, self.left_out = chosen(fits, training.train_share, seed, fault)
        longest = pairs.tgt_lengths[kept].max()
        found = f"a sentence has {longest} symbols"
        pairs.check_budget(found, longest, "micro_batch_tokens", training.micro_batch_tokens, "max_length")
        super().__init__(pairs, kept, training, training.micro_batch_tokens, seed)

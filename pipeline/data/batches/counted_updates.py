"""Updates of so many sequences of like length each: which sequences update n has, as a pure function of (seed, n).

An epoch shuffles the sequences, sorts each stretch of POOL updates by length and permutes the updates: neighbours in an
update are of like length, and no two epochs have the same updates. The first epoch may go from short to long instead
(SortaGrad, Deep Speech 2, section 3.3; Cold Fusion, section 4.3). Sizes of updates are those of every epoch.
"""

import numpy as np

from pipeline.data.batches.random_keys import random_keys

POOL = 32


class CountedUpdates:
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

    def pairs_of(self, step: int) -> np.ndarray:
        """The sequences of global update `step` (from 0), the shortest first."""
        epoch, place = divmod(step, len(self))
        if self._known[0] != epoch:  # kept, because many updates of one epoch follow each other
            self._known = epoch, *self._order(epoch)
        _, order, updates = self._known
        begin, end = self.cuts[updates[place] : updates[place] + 2]
        return self.numbers[order[begin:end]]

    def heaviest(self) -> np.ndarray:
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

"""What batches of so many sequences an update have in common, be the sequences utterances or sentences."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from pipeline.data.counted_updates import CountedUpdates
from pipeline.data.random_keys import random_keys

Batch = TypeVar("Batch")


class CountedBatches(ABC, Generic[Batch]):
    """The updates of a training run; `len()` is their number in an epoch, the same in every epoch.

    Args:
        lengths: (N,) positions of every sequence of the split, on the side that decides how many fit a micro-batch.
        kept: numbers of those to train on; at least one.
        per_update: sequences of an update; the last updates of an epoch may have one fewer.
        micro_batch_positions: positions of a micro-batch at most, padding counted; updates are the same whatever it is.
        sorted_first: first epoch from short to long.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        kept: np.ndarray,
        per_update: int,
        micro_batch_positions: int,
        seed: int,
        sorted_first: bool,
    ):
        self.lengths, self.micro_batch_positions = lengths, micro_batch_positions
        self.updates = CountedUpdates(kept, lengths[kept], per_update, seed, sorted_first)
        self.padding = self.updates.padding

    @abstractmethod
    def batch(self, indices: np.ndarray, step: int | None) -> Batch:
        """The sequences `indices` as they are read in update `step`; None = undisturbed."""

    def __len__(self) -> int:
        return len(self.updates)

    @property
    def sequences(self) -> int:
        """Sequences of an epoch."""
        return len(self.updates.numbers)

    def epoch_of(self, step: int) -> int:
        return step // len(self)

    def update(self, step: int, rank: int = 0, world_size: int = 1) -> list[Batch]:
        """The micro-batches of global update `step` (from 0) that fall to process `rank` of `world_size`.

        Micro-batch i of the update goes to process i % world_size.
        """
        return [self.batch(part, step) for part in self._split(self.updates.numbers_of(step))[rank::world_size]]

    def largest(self) -> list[Batch]:
        """The update of the longest sequences, to fail early if it does not fit."""
        return [self.batch(part, None) for part in self._split(self.updates.longest())]

    def _split(self, indices: np.ndarray) -> list[np.ndarray]:
        rows = self.micro_batch_positions // int(self.lengths[indices].max())
        return np.array_split(indices, -(-len(indices) // rows))


def random_share(numbers: np.ndarray, share: float, seed: int) -> np.ndarray:
    """A share of `numbers`, in rising order: those of the smallest random keys, so that samples are nested."""
    if share >= 1 or not len(numbers):
        return numbers
    keys = random_keys(seed, 0, 0, int(numbers[-1]) + 1, stream=3)[numbers]
    return np.sort(numbers[np.argsort(keys)[: max(1, round(share * len(numbers)))]])

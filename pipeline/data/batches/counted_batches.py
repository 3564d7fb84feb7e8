"""What batches of so many sequences an update have in common, be the sequences utterances or sentences."""

import numpy as np

from pipeline.config import TrainingConfig
from pipeline.core.errors import UserError
from pipeline.data.batches.counted_updates import CountedUpdates
from pipeline.data.batches.random_keys import random_keys
from pipeline.data.batches.split_batches import AnyBatch, Split, UpdateBatches


class CountedBatches(CountedUpdates, UpdateBatches[Split, AnyBatch]):
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

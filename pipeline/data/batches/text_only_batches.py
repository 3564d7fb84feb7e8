"""Batches of text without a source, for language models, each a pure function of (seed, step)."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from pipeline.config import TrainingConfig
from pipeline.data.batches.counted_batches import CountedBatches, chosen
from pipeline.data.batches.split_batches import Batch, EncodedSplit, enlarged


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


class TextOnlyBatches(CountedBatches[TextOnlySplit, TextOnlyBatch]):
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

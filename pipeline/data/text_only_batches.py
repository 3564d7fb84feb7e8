"""Batches of text without a source, for language models, each a pure function of (seed, step)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from pipeline.data.counted_batches import CountedBatches, chosen
from pipeline.data.split_batches import Batch, EncodedSplit


@dataclass(frozen=True)
class TextOnlyBatch(Batch):
    """B sentences."""

    tgt_in: Tensor
    tgt_out: Tensor

    @property
    def src_shape(self) -> tuple[int, int]:
        """Sentences, and no source position."""
        return len(self.tgt_out), 0


class TextOnlySplit(EncodedSplit):
    """The target side of one split of an encoded corpus, speech or text."""

    def batch(self, indices: np.ndarray) -> TextOnlyBatch:
        return TextOnlyBatch(*self.targets(indices))


class TextOnlyBatches(CountedBatches[TextOnlySplit, TextOnlyBatch]):
    """The updates of a training run on sentences.

    Args:
        sentences_per_update: the last updates of an epoch may have one fewer.
        micro_batch_tokens: symbols of a micro-batch at most, padding counted.
        max_length: sentences with more symbols (EOS not counted) are left out, counted in `left_out`.
        share: of the sentences that are left, a random sample; a smaller share is always part of a larger one.

    Raises:
        UserError: nothing is left to train on, or a single sentence exceeds `micro_batch_tokens`.
    """

    def __init__(
        self,
        corpus_folder: Path,
        split: str,
        *,
        sentences_per_update: int,
        micro_batch_tokens: int,
        max_length: int,
        share: float,
        seed: int,
    ):
        pairs = TextOnlySplit(corpus_folder, split)
        fits = pairs.tgt_lengths <= max_length + 1
        fault = f"{pairs.name}: no sentence of at most {max_length} symbols; raise `max_length`"
        kept, self.left_out = chosen(fits, share, seed, fault)
        longest = pairs.tgt_lengths[kept].max()
        found = f"a sentence has {longest} symbols"
        pairs.check_budget(found, longest, "micro_batch_tokens", micro_batch_tokens, "max_length")
        super().__init__(pairs, kept, sentences_per_update, micro_batch_tokens, seed, sorted_first=False)

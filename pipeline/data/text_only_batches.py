"""Batches of text without a source, for language models, each a pure function of (seed, step)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pipeline.data.batches import length_order
from pipeline.data.counted_batches import CountedBatches, random_share
from pipeline.data.token_store import TokenStore
from pipeline.errors import UserError
from pipeline.symbols import BOS, EOS, PAD


@dataclass(frozen=True)
class TextOnlyBatch:
    """B sentences: tgt_in (B, T) = BOS + y, tgt_out (B, T) = y + EOS, padded with PAD."""

    tgt_in: Tensor
    tgt_out: Tensor

    @property
    def src_shape(self) -> tuple[int, int]:
        """Sentences, and no source position."""
        return len(self.tgt_out), 0

    @property
    def num_tokens(self) -> int:
        """Symbols that are predicted, EOS included, padding not."""
        return int((self.tgt_out != PAD).sum())

    def to(self, device: torch.device | str) -> "TextOnlyBatch":
        return TextOnlyBatch(*(side.to(device, non_blocking=True) for side in (self.tgt_in, self.tgt_out)))


class TextOnlySplit:
    """The target side of one split of an encoded corpus, speech or text; `tgt_lengths` (sentences,) count EOS."""

    def __init__(self, corpus_folder: Path, split: str):
        self.name = f"{corpus_folder}: split {split}"
        self.tgt = TokenStore(Path(corpus_folder) / f"{split}.tgt")
        self.tgt_lengths = self.tgt.lengths() + 1

    def batch(self, indices: np.ndarray) -> TextOnlyBatch:
        tgt_in = self.tgt.padded(indices, first=BOS, last=None, pad=PAD)
        tgt_out = self.tgt.padded(indices, first=None, last=EOS, pad=PAD)
        return TextOnlyBatch(torch.from_numpy(tgt_in), torch.from_numpy(tgt_out))


class TextOnlyBatches(CountedBatches[TextOnlyBatch]):
    """The updates of a training run; `len()` is their number in an epoch, the same in every epoch.

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
        self.pairs = TextOnlySplit(corpus_folder, split)
        fits = self.pairs.tgt_lengths <= max_length + 1
        kept = random_share(np.flatnonzero(fits), share, seed)
        if not len(kept):
            raise UserError(f"{self.pairs.name}: no sentence of at most {max_length} symbols; raise `max_length`")
        self.left_out = int(len(fits) - fits.sum())
        lengths = self.pairs.tgt_lengths[kept]
        if lengths.max() > micro_batch_tokens:
            raise UserError(
                f"{self.pairs.name}: a sentence has {lengths.max()} symbols but micro_batch_tokens is "
                f"{micro_batch_tokens}; raise it or lower max_length"
            )
        super().__init__(
            self.pairs.tgt_lengths, kept, sentences_per_update, micro_batch_tokens, seed, sorted_first=False
        )

    def batch(self, indices: np.ndarray, step: int | None) -> TextOnlyBatch:
        return self.pairs.batch(indices)


class TextOnlyEvaluationBatches:
    """Every sentence of a split exactly once, the longest first: (indices (B,), TextOnlyBatch)."""

    def __init__(self, corpus_folder: Path, split: str, batch_tokens: int):
        self.pairs, self.batch_tokens = TextOnlySplit(corpus_folder, split), batch_tokens

    def __iter__(self) -> Iterator[tuple[np.ndarray, TextOnlyBatch]]:
        lengths = self.pairs.tgt_lengths
        for indices in length_order(lengths, lengths, self.batch_tokens):
            yield indices, self.pairs.batch(indices)

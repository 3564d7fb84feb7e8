"""How long the sentences of test sets are, and those of the training."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pipeline.data.store.token_store import TokenStore


def source_lengths(corpus: Path, splits: Iterable[str]) -> np.ndarray:
    """(N,) words of the source sentences of some splits in a row; subwords, where the vocabulary has those."""
    return np.concatenate([TokenStore(corpus / f"encoded/{split}.src").lengths() for split in splits])


def longest_trained_on(corpus: Path, max_length: int) -> int:
    """Words (subwords) of the longest source in training, which leaves out pairs with more than `max_length` a side."""
    src, tgt = (TokenStore(corpus / f"encoded/train.{side}").lengths() for side in ("src", "tgt"))
    return int(src[np.maximum(src, tgt) <= max_length].max())

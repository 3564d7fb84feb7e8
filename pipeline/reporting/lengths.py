"""How long the sentences of test sets are."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pipeline.data.token_store import TokenStore


def source_lengths(corpus: Path, splits: Iterable[str]) -> np.ndarray:
    """(N,) words of the source sentences of some splits in a row; subwords, where the vocabulary has those."""
    return np.concatenate([TokenStore(corpus / f"encoded/{split}.src").lengths() for split in splits])

"""Random numbers of places, drawn by a counter: each can be had without those before it."""

import numpy as np


def random_keys(seed: int, epoch: int, begin: int, end: int, stream: int) -> np.ndarray:
    """The random uint64 of places begin … end - 1, each a function of (seed, epoch, stream, place)."""
    block = begin // 4  # Philox yields four numbers per count
    key = np.array([seed, epoch], dtype=np.uint64)
    return np.random.Philox(key=key, counter=[block, stream, 0, 0]).random_raw(end - 4 * block)[begin - 4 * block :]

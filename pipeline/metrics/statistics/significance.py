"""How sure a score is: intervals by resampling sentences (Koehn 2004), from their statistics."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Total = Callable[[np.ndarray], np.ndarray]
"""Scores (…,) of summed statistics (…, F)."""

RESAMPLES, SEED = 1000, 1
BLOCK = 100  # resamples counted at once, to bound memory


@dataclass(frozen=True)
class Interval:
    value: float
    low: float | None = None
    high: float | None = None


def resampled(statistics: np.ndarray, total: Total, resamples: int = RESAMPLES, seed: int = SEED) -> np.ndarray:
    """The metric on each resample, (resamples,), of statistics (N, F). The draws depend on N and the seed alone."""
    sentences, generator = len(statistics), np.random.default_rng(seed)
    totals = []
    for begin in range(0, resamples, BLOCK):
        rows = np.arange(min(BLOCK, resamples - begin))[:, None]
        drawn = generator.integers(sentences, size=(len(rows), sentences)) + rows * sentences
        counts = np.bincount(drawn.ravel(), minlength=len(rows) * sentences).reshape(len(rows), sentences)
        totals.append(counts.astype(np.float64) @ statistics)
    return total(np.concatenate(totals))


def bootstrap_interval(statistics: np.ndarray, total: Total, resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """The metric with its 95 % interval (percentiles of the resamples), of statistics (N, F); one sentence has none."""
    value = float(total(statistics.sum(axis=0)))
    if len(statistics) == 1:
        return Interval(value)
    low, high = np.percentile(resampled(statistics, total, resamples, seed), [2.5, 97.5])
    return Interval(value, float(low), float(high))

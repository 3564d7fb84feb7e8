"""Bootstrap resampling of sentences (Koehn 2004) from their statistics."""

from dataclasses import dataclass

import numpy as np

from pipeline.metrics.metric import Total

RESAMPLES, SEED = 1000, 1
BLOCK = 100  # resamples counted at once, to bound memory


@dataclass(frozen=True)
class Interval:
    """A score with its 95 % interval."""

    value: float
    low: float | None = None
    high: float | None = None


def resampled(statistics: np.ndarray, total: Total, resamples: int = RESAMPLES, seed: int = SEED) -> np.ndarray:
    """Return the metric on each resample of the sentences.

    The draws depend on N and the seed alone, so that systems scored on one test set are resampled in pairs.

    Args:
        statistics: Shape (N, F).
        total: Maps summed statistics to scores.
        resamples: Number of resamples.
        seed: Seed of the draws.

    Returns:
        Shape (resamples,).
    """
    sentences, generator = len(statistics), np.random.default_rng(seed)
    totals = []
    for begin in range(0, resamples, BLOCK):
        rows = np.arange(min(BLOCK, resamples - begin))[:, None]
        drawn = generator.integers(sentences, size=(len(rows), sentences)) + rows * sentences
        counts = np.bincount(drawn.ravel(), minlength=len(rows) * sentences).reshape(len(rows), sentences)
        totals.append(counts.astype(np.float64) @ statistics)
    return total(np.concatenate(totals))


def bootstrap_interval(statistics: np.ndarray, total: Total, resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """Return the metric with the 95 % percentile interval of its resamples.

    Args:
        statistics: Shape (N, F). A single sentence has no interval.
        total: Maps summed statistics to scores.
        resamples: Number of resamples.
        seed: Seed of the draws.
    """
    value = float(total(statistics.sum(axis=0)))
    if len(statistics) == 1:
        return Interval(value)
    low, high = np.percentile(resampled(statistics, total, resamples, seed), [2.5, 97.5])
    return Interval(value, float(low), float(high))

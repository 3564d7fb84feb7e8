"""How sure a score is: intervals and paired tests by resampling sentences (Koehn 2004), from their statistics."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.errors import UserError

Total = Callable[[np.ndarray], np.ndarray]
"""Scores (…,) of summed statistics (…, F)."""

RESAMPLES, SEED = 1000, 1
BLOCK = 100  # resamples counted at once, to bound memory


@dataclass(frozen=True)
class Interval:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """System a less system b on the same sentences."""

    difference: float
    low: float
    high: float
    p_value: float
    """Two-sided: how often chance alone gives a difference at least this large."""


def resampled(statistics: np.ndarray, total: Total, resamples: int = RESAMPLES, seed: int = SEED) -> np.ndarray:
    """The metric on each resample, (resamples,), of statistics (N, F). The draws depend on N and the seed alone."""
    sentences = len(statistics)
    generator = np.random.default_rng(seed)
    totals = []
    for begin in range(0, resamples, BLOCK):
        rows = np.arange(min(BLOCK, resamples - begin))[:, None]
        drawn = generator.integers(sentences, size=(len(rows), sentences)) + rows * sentences
        counts = np.bincount(drawn.ravel(), minlength=len(rows) * sentences).reshape(len(rows), sentences)
        totals.append(counts.astype(np.float64) @ statistics)
    return total(np.concatenate(totals))


def bootstrap_interval(statistics: np.ndarray, total: Total, resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """The metric with its 95 % interval (percentiles of the resamples), of statistics (N, F)."""
    low, high = np.percentile(resampled(statistics, total, resamples, seed), [2.5, 97.5])
    return Interval(float(total(statistics.sum(axis=0))), float(low), float(high))


def paired_bootstrap(
    a: np.ndarray, b: np.ndarray, total: Total, resamples: int = RESAMPLES, seed: int = SEED
) -> Comparison:
    """Whether system a differs from b, given their statistics (N, F) on the same sentences in the same order.

    The p-value is the share of resamples whose difference lies as far from the mean of all as the observed one from
    zero (Riezler and Maxwell 2005), which is what sacreBLEU reports.

    Raises:
        UserError: the numbers of sentences differ.
    """
    if len(a) != len(b):
        raise UserError(f"can't compare scores of {len(a)} and {len(b)} sentences: they are not of one test set")
    difference = float(total(a.sum(axis=0)) - total(b.sum(axis=0)))
    return compared(difference, resampled(a, total, resamples, seed) - resampled(b, total, resamples, seed))


def compared(difference: float, differences: np.ndarray) -> Comparison:
    """Of a difference, and the same on each resample."""
    low, high = np.percentile(differences, [2.5, 97.5])
    as_far = np.abs(differences - differences.mean()) >= abs(difference)
    return Comparison(difference, float(low), float(high), float((as_far.sum() + 1) / (len(differences) + 1)))

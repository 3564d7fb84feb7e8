"""Paired bootstrap over the sentences of a test set (Koehn 2004): is one score better than another?"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.core.errors import UserError
from pipeline.core.records.outputs import ScoreFile
from pipeline.core.schema import known
from pipeline.metrics import metric_named
from pipeline.metrics.metric import RESAMPLES, SEED, Total, resampled
from pipeline.metrics.score_file import read_statistics


@dataclass(frozen=True)
class Comparison:
    """Difference of system a and system b on the same sentences."""

    difference: float
    low: float
    high: float
    p_value: float
    """Two-sided."""


def compare_scores(a: Path, b: Path, name: str) -> Comparison:
    """Compare two score files by the metric `name`.

    Raises:
        UserError: Their test sets, references or signatures differ.
    """
    bases = []
    for path in (a, b):
        score = ScoreFile.read(path)
        known(name, score.metrics, f"{path}: metric")
        bases.append(score.basis(name))
    for what, ours, theirs in zip(("test_set", "references", "signature"), *bases, strict=True):
        if ours != theirs:
            raise UserError(f"can't compare {a} and {b}: {what} differs ({ours}, {theirs})")
    return paired_bootstrap(read_statistics(a, name), read_statistics(b, name), metric_named(name).total)


def paired_bootstrap(
    a: np.ndarray, b: np.ndarray, total: Total, resamples: int = RESAMPLES, seed: int = SEED
) -> Comparison:
    """Test whether system a differs from b.

    The p-value is the share of resamples whose difference is as far from the mean of all as the observed one is from
    zero (Riezler and Maxwell 2005). sacreBLEU reports the same.

    Args:
        a: Statistics of the sentences, shape (N, F).
        b: Those of the other system on the same sentences in the same order.
        total: Maps summed statistics to scores.
        resamples: Number of resamples.
        seed: Seed of the draws.

    Raises:
        UserError: The numbers of sentences differ, or there is one sentence.
    """
    if len(a) != len(b):
        raise UserError(f"can't compare scores of {len(a)} and {len(b)} sentences: score both systems on one test set")
    if len(a) == 1:
        raise UserError("can't compare scores of one sentence: use a test set with at least two")
    difference = float(total(a.sum(axis=0)) - total(b.sum(axis=0)))
    return compared(difference, resampled(a, total, resamples, seed) - resampled(b, total, resamples, seed))


def compared(difference: float, differences: np.ndarray) -> Comparison:
    """Compare a difference with the differences on resamples."""
    low, high = np.percentile(differences, [2.5, 97.5])
    as_far = np.abs(differences - differences.mean()) >= abs(difference)
    return Comparison(difference, float(low), float(high), float((as_far.sum() + 1) / (len(differences) + 1)))

"""Paired bootstrap over the sentences of a test set (Koehn 2004): is one score better than another?"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.core.errors import UserError
from pipeline.core.records.outputs import ScoreFile
from pipeline.core.schema import known
from pipeline.metrics import metric_named, read_statistics
from pipeline.metrics.metric import RESAMPLES, Total, resampled


@dataclass(frozen=True)
class Comparison:
    """Difference of system a and system b on the same sentences.

    Attributes:
        difference: Score of a minus score of b.
        low: Lower end of the 95 % interval.
        high: Upper end of the 95 % interval.
        p_value: Two-sided.
    """

    difference: float
    low: float
    high: float
    p_value: float


def compare_scores(a: Path, b: Path, name: str) -> Comparison:
    """Return the difference of the score files `a` and `b`, each with its statistics, by the metric `name`.

    Raises:
        UserError: Their test sets, references or signatures differ.
    """
    bases = []
    for path in (a, b):
        score = ScoreFile.read(path)
        known(name, score.metrics, f"{path}: metric")
        bases.append(score.basis(name))
    for what, ours, theirs in zip(("test set", "digest of the references", "signature"), *bases, strict=True):
        if ours != theirs:
            if what == "digest of the references":
                ours, theirs = ours[:60], theirs[:60]
            raise UserError(
                f"can't compare {a} and {b}: {what} differs ({ours}, {theirs}); both must be scored on one "
                "test set by one metric"
            )
    return paired_bootstrap(read_statistics(a, name), read_statistics(b, name), metric_named(name).total)


def paired_bootstrap(a: np.ndarray, b: np.ndarray, total: Total, resamples: int = RESAMPLES) -> Comparison:
    """Test whether system a differs from system b (Riezler and Maxwell 2005).

    The p-value is a share of resamples: those whose difference is as far from the mean as the observed one from zero.
    sacreBLEU reports the same.

    Args:
        a: Statistics of the sentences, shape (N, F).
        b: Those of the other system on the same sentences in the same order, shape (N, F).
        total: Maps summed statistics to scores.
        resamples: Number of resamples.

    Returns:
        The difference of a and b.

    Raises:
        UserError: The numbers of sentences differ, or there is one sentence.
    """
    if len(a) != len(b):
        raise UserError(f"can't compare scores of {len(a)} and {len(b)} sentences: score both systems on one test set")
    if len(a) == 1:
        raise UserError("can't compare scores of one sentence: use a test set with at least two")
    difference = float(total(a.sum(axis=0)) - total(b.sum(axis=0)))
    return compare_resamples(difference, resampled(a, total, resamples) - resampled(b, total, resamples))


def compare_resamples(difference: float, differences: np.ndarray) -> Comparison:
    """Return a `difference` with interval and p-value by the `differences` (resamples,) of resampled sentences."""
    low, high = np.percentile(differences, [2.5, 97.5])
    as_far = np.abs(differences - differences.mean()) >= abs(difference)
    return Comparison(difference, float(low), float(high), float((as_far.sum() + 1) / (len(differences) + 1)))

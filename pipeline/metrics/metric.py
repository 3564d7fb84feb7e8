"""The metric class, inputs of translation metrics, ratios that several metrics share, and bootstrap resampling.

A metric is a function of statistics summed over sentences. Resampling sentences (Koehn 2004) gives its interval and the
paired test of two systems.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np

from pipeline.core.errors import UserError

Total = Callable[[np.ndarray], np.ndarray]
"""Maps summed statistics (…, F) to scores (…,)."""


class DatasetKind(Protocol):
    """The two facts of a dataset record that decide which metrics it can have."""

    form: ClassVar[Any]
    collector: ClassVar[str | None]


class MetricInputs:
    """Base of the inputs of metrics: outputs and references of one split."""

    folder: ClassVar[str]
    """Subfolder of a run where the stage writes its score files."""
    forms: ClassVar[tuple[str, ...]]
    """Forms of datasets that these inputs exist for."""
    collector: ClassVar[str | None] = None
    """Collector of the dataset, if only one records what is needed."""

    @classmethod
    def exist_for(cls, dataset: DatasetKind) -> bool:
        """Return whether metrics of these inputs can be computed on a dataset."""
        return dataset.form in cls.forms and cls.collector in (None, dataset.collector)


@dataclass(frozen=True)
class Texts:
    """Hypotheses and one or more lists of references of one test set, line by line."""

    hypotheses: list[str]
    references: list[list[str]]


@dataclass(frozen=True)
class Translations(MetricInputs):
    """Translations of a test set, and what its dataset file says about how the paper counted."""

    folder = "scores"
    forms = ("sentences",)
    raw: Texts
    tokenised: Texts
    compound_split: bool = False
    nist: bool = False
    tgt: str = "en"
    tokeniser: str = "moses"
    case: Literal["mixed", "lc"] = "mixed"
    """Case of the tokenised text on both sides."""
    counted: dict[Hashable, np.ndarray] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Statistics of the sentences by recipe, kept because several metrics share one."""


Inputs = TypeVar("Inputs", bound=MetricInputs)


@dataclass(frozen=True)
class Metric(Generic[Inputs]):
    """A score of a test set that is a function of statistics summed over its sentences."""

    name: str
    """Key in score files."""
    reads: type[Inputs]
    statistics: Callable[[Inputs], np.ndarray]
    """Counts statistics of shape (N, F) for N sentences (or batches)."""
    total: Total
    """Scores many corpora (resamples) at once."""
    signature: Callable[[Inputs], str]
    """Says how the score was counted; two scores are comparable only if their signatures are equal."""
    better: Literal["higher", "lower"] = "higher"
    applies: Callable[[Inputs], bool] = lambda inputs: True
    """Says whether the metric is defined for a test set."""
    comparison_scale: Callable[[np.ndarray], np.ndarray] = np.asarray
    """Maps scores to a scale on which the noise does not depend on the score; systems are compared on it."""

    @property
    def sign(self) -> Literal[1, -1]:
        """Return the factor that makes a difference positive if the better system comes first."""
        return 1 if self.better == "higher" else -1


def percentage(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Compute `part` (…,) in percent of `whole` (…,); zero where that is zero."""
    return 100 * np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) != 0)


def success_rate(totals: np.ndarray) -> np.ndarray:
    """Compute successes in percent of trials, shape (…,), from `totals` (…, 2)."""
    return percentage(totals[..., 0], totals[..., 1])


def mean_of_totals(totals: np.ndarray) -> np.ndarray:
    """Compute the mean (…,) from `totals` (…, 2), sum and count; NaN where the count is zero."""
    with np.errstate(invalid="ignore"):
        return totals[..., 0] / totals[..., 1]


RESAMPLES, SEED = 1000, 1
BLOCK = 100  # resamples counted at once, to bound memory


@dataclass(frozen=True)
class Interval:
    """A score with its 95 % interval."""

    value: float
    low: float | None = None
    high: float | None = None


def resampled(statistics: np.ndarray, total: Total, resamples: int = RESAMPLES, seed: int = SEED) -> np.ndarray:
    """Compute the metric on each bootstrap resample of the sentences (Koehn 2004).

    The draws depend on N and the seed alone, so that systems scored on one test set are resampled in pairs.

    Args:
        statistics: Shape (N, F).
        total: Maps summed statistics to scores.
        resamples: Number of resamples.
        seed: Seed of the draws.

    Returns:
        Scores, shape (resamples,).
    """
    blocks = draw_counts(len(statistics), resamples, seed)
    return total(np.concatenate([counts.astype(np.float64) @ statistics for counts in blocks]))


@lru_cache(maxsize=8)
def draw_counts(sentences: int, resamples: int, seed: int) -> tuple[np.ndarray, ...]:
    """Count how often each resample draws each sentence.

    Args:
        sentences: N.
        resamples: Number of resamples.
        seed: Seed of the draws.

    Returns:
        Counts in blocks of shape (BLOCK, N); the last block may have fewer rows.
    """
    generator, blocks = np.random.default_rng(seed), []
    for begin in range(0, resamples, BLOCK):
        rows = np.arange(min(BLOCK, resamples - begin))[:, None]
        drawn = generator.integers(sentences, size=(len(rows), sentences)) + rows * sentences
        counts = np.bincount(drawn.ravel(), minlength=len(rows) * sentences)
        blocks.append(counts.reshape(len(rows), sentences).astype(np.min_scalar_type(int(counts.max()))))
    return tuple(blocks)


def bootstrap_interval(statistics: np.ndarray, total: Total) -> Interval:
    """Compute the metric with the 95 % percentile interval of its resamples.

    Args:
        statistics: Shape (N, F). A single sentence has no interval.
        total: Maps summed statistics to scores.

    Returns:
        Score and interval.
    """
    value = float(total(statistics.sum(axis=0)))
    if len(statistics) == 1:
        return Interval(value)
    return Interval(value, *percentile_interval(resampled(statistics, total)))


def percentile_interval(scores: np.ndarray) -> tuple[float, float]:
    """Return the ends between which 95 % of `scores` (resamples,) lie; some may be infinite, as a perplexity.

    Both are NaN if a score is.
    """
    with np.errstate(invalid="ignore"):  # numpy interpolates between two infinite scores by their difference, NaN
        ends = np.percentile(scores, [2.5, 97.5])
    low, high = np.where(np.isnan(ends) & ~np.isnan(scores).any(), np.inf, ends)
    return float(low), float(high)


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
        UserError: The numbers of sentences differ, there is one sentence, or scores are infinite.
    """
    if len(a) != len(b):
        raise UserError(f"can't compare scores of {len(a)} and {len(b)} sentences: score both systems on one test set")
    if len(a) == 1:
        raise UserError("can't compare scores of one sentence: use a test set with at least two")
    draws = [resampled(statistics, total, resamples) for statistics in (a, b)]
    if not np.isfinite(draws).all():
        raise UserError("can't compare infinite scores: one of the systems gives a sentence almost no probability")
    return compare_resamples(float(total(a.sum(axis=0)) - total(b.sum(axis=0))), draws[0] - draws[1])


def compare_resamples(difference: float, differences: np.ndarray) -> Comparison:
    """Return a `difference` with interval and p-value by the `differences` (resamples,) of resampled sentences."""
    low, high = np.percentile(differences, [2.5, 97.5])
    as_far = np.abs(differences - differences.mean()) >= abs(difference)
    return Comparison(difference, float(low), float(high), float((as_far.sum() + 1) / (len(differences) + 1)))

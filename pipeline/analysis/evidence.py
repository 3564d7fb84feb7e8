"""Effect sizes, standard errors and p-values for claims.

A claim is turned into quantities that are positive if it is true, e.g. a difference or the distance from a bound. Each
is a weighted sum over systems of a score, or of another result of training. Its standard error has two sources:

    error^2 = sum_k w_k^2 s^2 / n_k  +  max(0, B - sum_k e_k^2 / n_k)

- s^2 is the run-to-run variance. It is assumed equal for all systems of a family and pooled over them (`Sample.pool`).
  n_k is the number of seeds of system k, and w_k its weight.
- B is the variance of the quantity over resampled sentences. All systems and seeds share the resamples (paired
  bootstrap; Koehn 2004). e_k^2 is the part of B that differs between the seeds of system k. It is run-to-run variance,
  which s^2 contains already. If s^2 is unknown for one of the systems, neither s^2 nor e_k^2 counts. If all resamples
  are equal, because all outputs are right or there is one sentence, B follows from the rule of three (`ALIKE`).

The quantity divided by its error is treated as Student's t, with degrees of freedom by Welch and Satterthwaite. If a
system has several decodings or several parts of a test set, the terms of each training are summed first, because they
share its run-to-run noise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

import numpy as np

from pipeline.core.errors import UserError, count_of
from pipeline.metrics.metric import SEED, Total, percentile_interval, resampled

Scale = Total
"""Maps scores to the scale on which they are compared."""
UNKNOWN = "unknown and not counted"
ALIKE = 100 * 3 / 1.645
"""N times the standard error, in percent, of N sentences that all score alike.

By the rule of three, up to 3 / N of all sentences score otherwise (95 %, one-sided).
"""
FEWEST_SENTENCES = 20
"""The score of fewer sentences is not compared, because resamples of so few show too little of their variance."""


@dataclass(frozen=True)
class Evidence:
    """A quantity that is positive if the claim is true."""

    name: str
    value: float
    error: float | None
    """Standard error; None if it is unknown."""
    degrees_of_freedom: float = np.inf
    noise: str = ""
    """Source of the run-to-run variance, in words."""

    @property
    def low(self) -> float:
        """Return the lower end of the 95 % interval."""
        return self.value - self.half_width

    @property
    def high(self) -> float:
        """Return the upper end of the 95 % interval."""
        return self.value + self.half_width

    @property
    def half_width(self) -> float:
        """Return half the width of the 95 % interval; infinite if the error is unknown."""
        return np.inf if self.error is None else self.error * t_half_width(0.95, self.degrees_of_freedom)

    @property
    def detectable(self) -> float:
        """Return the smallest effect that is significant at 5 % with a power of 80 %."""
        if self.error is None:
            return np.inf
        return self.error * (t_half_width(0.95, self.degrees_of_freedom) + t_half_width(0.6, self.degrees_of_freedom))

    @cached_property
    def p_value(self) -> float | None:
        """Return the one-sided p-value against zero; None if the error is unknown."""
        if self.error is None:
            return None
        if self.error == 0:
            return 0.5 - 0.5 * float(np.sign(self.value))
        return t_sf(self.value / self.error, self.degrees_of_freedom)

    def __str__(self) -> str:
        interval = "" if self.error is None else f" [{self.low:+.3g}, {self.high:+.3g}]"
        return f"{self.name} {self.value:+.3g}{interval}"


@dataclass(frozen=True)
class Sample:
    """A score of one system, or another result of its trainings, for each of n seeds."""

    by_seed: np.ndarray
    """Shape (n,)."""
    draws: np.ndarray
    """Shape (n, resamples): the score on each resample of the sentences; (n, 1) if there are no sentences."""
    test_set: str
    system: str = ""
    pool: tuple[np.ndarray, ...] = ()
    """Values of each system over which variance is pooled, in a fixed order; empty means this system alone."""
    rows: int = 1
    """Number of sentences that are resampled."""
    noise: str = "over its own seeds"
    """Source of `pool`, in words."""
    basis: str = ""
    """References and signature of the scores; equal for comparable samples."""
    weight: float = 1
    """Factor that the sample contains, but not `pool`."""

    @property
    def mean(self) -> float:
        """Return the mean over seeds."""
        return float(self.by_seed.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % bootstrap interval, which covers the choice of sentences but not of seeds."""
        return percentile_interval(self.draws.mean(axis=0))

    @property
    def groups(self) -> tuple[np.ndarray, ...]:
        """Return the groups over which the run-to-run variance is pooled."""
        return self.pool or (self.by_seed,)

    def rescaled(self, scale: Scale, weight: float) -> "Sample":
        """Return the sample on a scale, times a weight; groups that became infinite are dropped from its pool."""
        pool = tuple(group for group in map(scale, self.groups) if np.isfinite(group).all())
        by_seed, draws = (weight * scale(values) for values in (self.by_seed, self.draws))
        return replace(self, by_seed=by_seed, draws=draws, pool=pool, weight=weight)

    def __add__(self, other: "Sample") -> "Sample":
        """Add a sample of the same trainings; the noise is then estimated from the sum alone."""
        by_seed, draws = self.by_seed + other.by_seed, self.draws + other.draws
        return replace(self, by_seed=by_seed, draws=draws, pool=(), noise=Sample.noise, weight=1)


def over_seeds(name: str, values: Sequence[float]) -> Evidence:
    """Test whether the mean of one number per seed (or repeat) is above zero, by a t test.

    Args:
        name: Name of the quantity.
        values: One number per seed.

    Returns:
        Evidence with n - 1 degrees of freedom. Its error is unknown if all numbers are equal, as counts can be.
    """
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5 if np.ptp(values) else None
    return Evidence(name, float(np.mean(values)), error, len(values) - 1)


def within_bounds(name: str, values: Sequence[float], at_least: float, at_most: float | None) -> list[Evidence]:
    """Return evidence by t tests that the mean over seeds (or repeats) lies inside each bound, the lower first.

    Args:
        name: Name of the quantity.
        values: One number per seed.
        at_least: Lower bound.
        at_most: Upper bound; None if there is none.
    """
    found = [over_seeds(f"{name} above {at_least:g}", [value - at_least for value in values])]
    if at_most is not None:
        found.append(over_seeds(f"{name} below {at_most:g}", [at_most - value for value in values]))
    return found


def bootstrap_sample(
    statistics: Sequence[Sequence[np.ndarray]], total: Total, test_set: str, system: str = "", sets: int = 1
) -> Sample:
    """Score and resample the sentences of each seed.

    Args:
        statistics: `statistics[seed][i]` of shape (N_i, F): F counts for each of N_i sentences. i counts the test sets
            of each decoding; the scores of a seed are averaged over i.
        total: Maps summed statistics to scores.
        test_set: Name of the test set.
        system: Name of the system.
        sets: Number of test sets, which are resampled independently of each other.

    Returns:
        A sample with draws of shape (n, resamples), the same resamples for every seed. It has no pool yet.

    Raises:
        UserError: The numbers of sentences differ between seeds.
    """
    if len({tuple(map(len, seed)) for seed in statistics}) != 1:
        raise UserError("can't compare scores of different test sets: their numbers of sentences differ")
    draws = [
        np.mean([resampled(sentences, total, seed=SEED + i % sets) for i, sentences in enumerate(of_seed)], axis=0)
        for of_seed in statistics
    ]
    return Sample(seed_scores(statistics, total), np.array(draws), test_set, system, rows=len(statistics[0][0]))


def seed_scores(statistics: Sequence[Sequence[np.ndarray]], total: Total) -> np.ndarray:
    """Return the score of each seed, averaged over decodings or test sets, shape (n,).

    Args:
        statistics: `statistics[seed][i]` of shape (N_i, F), as for `bootstrap_sample`.
        total: Maps summed statistics to scores.
    """
    return np.array([np.mean([total(sentences.sum(axis=0)) for sentences in seed]) for seed in statistics])


def training_sample(
    values: Sequence[float] | np.ndarray, system: str, pool: Sequence[np.ndarray] = (), noise: str = ""
) -> Sample:
    """Return a sample of one number per training, with draws of shape (n, 1): no sentences are resampled.

    Args:
        values: One number per training, shape (n,).
        system: Name of the system.
        pool: Values of each system over which the run-to-run variance is pooled; empty means this system alone.
        noise: Source of `pool`, in words.
    """
    by_seed = np.array(values, dtype=float)
    return Sample(by_seed, by_seed[:, None], "", system, tuple(pool), noise=noise or Sample.noise)


def contrast(
    name: str, terms: Sequence[tuple[float, Sample]], offset: float = 0, scale: Scale = np.asarray
) -> Evidence:
    """Test the weighted sum of samples plus an offset (equation in the module docstring).

    Args:
        name: Name of the quantity.
        terms: Pairs of weight and sample.
        offset: Added to the sum.
        scale: Applied to every sample before it is weighted.

    Returns:
        Evidence for the sum. Its error is unknown if neither runs nor sentences have a known variance, or if the sum is
        infinite on the scale.

    Raises:
        UserError: The samples differ in test set, number of sentences, or references and signature of the metric.
    """
    for values in zip(
        *((term.test_set, count_of(term.rows, "sentence"), term.basis) for _, term in terms), strict=True
    ):
        if len(distinct := set(values)) > 1:
            raise UserError(f"can't compare scores on {' and '.join(sorted(distinct))} ({name})")
    with np.errstate(divide="ignore", invalid="ignore"):
        systems = summed_by_system([term.rescaled(scale, weight) for weight, term in terms])
        value = offset + sum(system.mean for system in systems)
        run_variance, degrees = pooled_noise(systems)
        resampled_sentences = systems[0].draws.shape[1] > 1
        known = degrees > 0 and (run_variance > 0 or resampled_sentences)
        draws = np.sum([system.draws.mean(axis=0) for system in systems], axis=0)
        sentence_variance = float(draws.var())
        if known and resampled_sentences and np.ptp(draws) == 0:
            sentence_variance = (ALIKE / systems[0].rows) ** 2
        counted = sum(map(seed_part, systems)) if known else 0.0  # by the run-to-run variance
        variance = run_variance + float(np.maximum(0.0, sentence_variance - counted))  # `max` would hide NaN
    if not np.isfinite(variance) or not (known or sentence_variance):
        return Evidence(name, value, None, noise=UNKNOWN)
    # Welch and Satterthwaite, if only the run-to-run variance has finite degrees of freedom.
    gain = (variance / run_variance) ** 2 if run_variance else np.inf
    noise = " and ".join(dict.fromkeys(system.noise for system in systems)) if known else UNKNOWN
    return Evidence(name, value, variance**0.5, degrees * gain if known else np.inf, noise)


def smaller_factor(a: Sample, b: Sample, c: Sample, d: Sample) -> Evidence:
    """Return evidence that the factor b / a is smaller than d / c, by the difference of logarithms."""
    return contrast("logarithm of both factors' ratio", [(1, d), (-1, c), (-1, b), (1, a)], scale=np.log)


def summed_by_system(terms: Sequence[Sample]) -> list[Sample]:
    """Sum the terms of each system."""
    ordered = sorted(terms, key=lambda term: term.system)
    return [sum(rest, first) for _, (first, *rest) in groupby(ordered, key=lambda term: term.system)]


def pooled_noise(systems: Sequence[Sample]) -> tuple[float, float]:
    """Return the run-to-run variance of the systems' sum (one estimate per pool) and its degrees; 0, 0 if unknown."""
    variances: dict[tuple[float, int], float] = {}  # contribution of each pool, by its variance and degrees of freedom
    for system in systems:
        if not (degrees := degrees_of_freedom(system.groups)):
            return 0.0, 0.0
        pool = pooled_variance(system.groups), degrees
        variances[pool] = variances.get(pool, 0.0) + system.weight**2 * pool[0] / len(system.by_seed)
    total = sum(variances.values())
    welch = sum(variance**2 / degrees for (_, degrees), variance in variances.items())
    return total, total**2 / welch if welch else float(max(degrees for _, degrees in variances))


def degrees_of_freedom(groups: Iterable[np.ndarray]) -> int:
    """Return the degrees of freedom of the pooled variance."""
    return sum(len(group) - 1 for group in groups)


def pooled_variance(groups: Sequence[np.ndarray]) -> float:
    """Return the variance within groups; zero if no group has two values."""
    return float(sum(((group - group.mean()) ** 2).sum() for group in groups)) / max(1, degrees_of_freedom(groups))


def seed_part(sample: Sample) -> float:
    """Return e_k^2 / n_k: the part of the variance over resampled sentences that is run-to-run variance."""
    if len(sample.by_seed) < 2:
        return 0.0
    return float(sample.draws.var(axis=1).mean() - sample.draws.mean(axis=0).var()) / (len(sample.by_seed) - 1)


def t_sf(value: float, degrees_of_freedom: float) -> float:
    """Return P(t > value) of Student's t, the survival function.

    Args:
        value: Value of t.
        degrees_of_freedom: Degrees of freedom; infinite for a normal distribution.
    """
    from scipy.special import ndtr, stdtr  # imported late: every dry run imports this module

    return float(ndtr(-value) if np.isinf(degrees_of_freedom) else stdtr(degrees_of_freedom, -value))


def t_half_width(level: float, degrees_of_freedom: float) -> float:
    """Return the x for which P(-x < t < x) of Student's t is `level`.

    Args:
        level: Probability inside the interval, e.g. 0.95.
        degrees_of_freedom: Degrees of freedom; infinite for a normal distribution.
    """
    from scipy.special import ndtri, stdtrit

    quantile = (1 + level) / 2
    return float(ndtri(quantile) if np.isinf(degrees_of_freedom) else stdtrit(degrees_of_freedom, quantile))

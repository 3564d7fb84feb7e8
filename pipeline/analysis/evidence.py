"""How sure it is that what a claim says is positive is positive.

A claim is turned into quantities that are positive if it is true: a difference, the distance from a bound. Each is a
weighted sum over systems of a score, or of another number of a training, and its standard error counts two kinds of
noise:

    error^2 = sum_k w_k^2 s^2 / n_k  +  max(0, B - sum_k e_k^2 / n_k)

s^2, the variance between trainings, taken to be that of all systems of a kind, is pooled over them (Sample.pool). B
is the variance of the quantity when sentences are resampled, the same ones for every system and seed (paired
bootstrap; Koehn 2004). e_k^2 is what of that differs between the seeds of a system: noise of its trainings, which s^2
has already. The quantity over its error is taken for a Student t, its degrees of freedom by Welch and Satterthwaite.
Of a system under several decodings, or on several parts of a set, the sums of each training are taken, which share
its noise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from pipeline.core.errors import UserError
from pipeline.metrics.statistics.significance import Total, resampled

Scale = Total
"""Of scores, on which they are compared."""


@dataclass(frozen=True)
class Evidence:
    """A quantity that is positive if the claim is true."""

    name: str
    value: float
    error: float | None
    """Its standard error; None where nothing is known of its noise."""
    freedom: float = np.inf
    """Degrees of freedom of the error."""
    noise: str = ""
    """Whence the error has its noise between trainings, in words."""

    @property
    def low(self) -> float:
        """Of the 95 % interval."""
        return self.value - self.half_width

    @property
    def high(self) -> float:
        return self.value + self.half_width

    @property
    def half_width(self) -> float:
        return np.inf if self.error is None else self.error * width(0.95, self.freedom)

    @property
    def detectable(self) -> float:
        """The smallest quantity that is told from zero four times in five, at a level of 5 %."""
        return np.inf if self.error is None else self.error * (width(0.95, self.freedom) + width(0.6, self.freedom))

    @property
    def p_value(self) -> float | None:
        """One-sided: how often so large a quantity would come out if it were zero; None without a distribution."""
        if self.error is None:
            return None
        if self.error == 0:
            return 0.5 - 0.5 * float(np.sign(self.value))
        return tail(self.value / self.error, self.freedom)

    def __str__(self) -> str:
        interval = "" if self.error is None else f" [{self.low:+.3g}, {self.high:+.3g}]"
        return f"{self.name} {self.value:+.3g}{interval}"


def over_seeds(name: str, values: Sequence[float]) -> Evidence:
    """Of one number a seed (or a repeat). Where all are the same, as counts can be, nothing is known of their noise."""
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5 if np.ptp(values) else None
    return Evidence(name, float(np.mean(values)), error, len(values) - 1)


def within(name: str, values: Sequence[float], at_least: float, at_most: float | None) -> list[Evidence]:
    """How far one number a seed (or a repeat) lies above a bound, and below another."""
    found = [over_seeds(f"{name} above {at_least:g}", [value - at_least for value in values])]
    if at_most is not None:
        found.append(over_seeds(f"{name} below {at_most:g}", [at_most - value for value in values]))
    return found


@dataclass(frozen=True)
class Sample:
    """A score of one system, or another number of its trainings."""

    by_seed: np.ndarray
    """(n,)"""
    draws: np.ndarray
    """(n, resamples): the same on each resample of the sentences; (n, 1) where there are none."""
    test_set: str
    system: str = ""
    pool: tuple[np.ndarray, ...] = ()
    """`by_seed` of every system of its kind, itself among them, in one order; empty: of itself alone."""
    rows: int = 1
    """Sentences that are resampled."""
    noise: str = "over its own seeds"
    """Whence `pool` is, in words."""
    basis: str = ""
    """What its scores are by, beside the test set."""

    @property
    def mean(self) -> float:
        return float(self.by_seed.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, of the sentences alone."""
        low, high = np.percentile(self.draws.mean(axis=0), [2.5, 97.5])
        return float(low), float(high)

    def on(self, scale: Scale, weight: float = 1) -> "Sample":
        by_seed, draws, *pool = (weight * scale(values) for values in (self.by_seed, self.draws, *self.groups))
        return replace(self, by_seed=by_seed, draws=draws, pool=tuple(one for one in pool if np.isfinite(one).all()))

    @property
    def groups(self) -> tuple[np.ndarray, ...]:
        return self.pool or (self.by_seed,)

    def __add__(self, other: "Sample") -> "Sample":
        """Of the same trainings: their noise is that of the sum."""
        return replace(
            self, by_seed=self.by_seed + other.by_seed, draws=self.draws + other.draws, pool=(), noise=Sample.noise
        )


def sample(statistics: Sequence[Sequence[np.ndarray]], total: Total, test_set: str, system: str = "") -> Sample:
    """statistics[seed][i] (N_i, F), the same i of the same sentences; the scores of a seed are averaged.

    i counts decodings of one test set, or test sets.

    Raises:
        UserError: the numbers of sentences differ between seeds.
    """
    if len({tuple(map(len, seed)) for seed in statistics}) != 1:
        raise UserError("can't compare scores of different numbers of sentences: they are not of one test set")
    draws = [np.mean([resampled(one, total) for one in seed], axis=0) for seed in statistics]
    return Sample(seed_scores(statistics, total), np.array(draws), test_set, system, rows=len(statistics[0][0]))


def seed_scores(statistics: Sequence[Sequence[np.ndarray]], total: Total) -> np.ndarray:
    """(n,) as `sample` has them."""
    return np.array([np.mean([total(one.sum(axis=0)) for one in seed]) for seed in statistics])


def trainings(
    values: Sequence[float] | np.ndarray, system: str, pool: Sequence[np.ndarray] = (), noise: str = ""
) -> Sample:
    """One number a training. pool, noise: as a Sample has them."""
    by_seed = np.array(values, dtype=float)
    return Sample(by_seed, by_seed[:, None], "", system, tuple(pool), noise=noise or Sample.noise)


Weighted = tuple[float, Sample]
UNKNOWN = "unknown and not counted"


def contrast(name: str, terms: Sequence[Weighted], offset: float = 0, scale: Scale = np.asarray) -> Evidence:
    """The weighted sum of terms, each on a scale, and an offset.

    Raises:
        UserError: they are of several test sets, of different numbers of sentences, or not counted alike.
    """
    for all_of in zip(*((one.test_set, f"{one.rows} sentences", one.basis) for _, one in terms), strict=True):
        if len(found := set(all_of)) > 1:
            raise UserError(f"can't compare scores on {' and '.join(sorted(found))} ({name})")
    with np.errstate(divide="ignore", invalid="ignore"):
        systems = of_systems([term.on(scale, weight) for weight, term in terms])
        value = offset + sum(one.mean for one in systems)
        squared, degrees = pooled_noise(systems)
        known = degrees > 0 and (squared > 0 or systems[0].draws.shape[1] > 1)
        sentences = float(np.sum([one.draws.mean(axis=0) for one in systems], axis=0).var())
        total = squared + max(0.0, sentences - sum(map(shared_with_seeds, systems)))
    if not np.isfinite(total) or not (known or sentences):
        return Evidence(name, value, None, noise=UNKNOWN)
    spread_out = (total / squared) ** 2 if squared else np.inf
    noise = " and ".join(dict.fromkeys(one.noise for one in systems)) if known else UNKNOWN
    return Evidence(name, value, total**0.5, degrees * spread_out if known else np.inf, noise)


def pooled_noise(systems: Sequence[Sample]) -> tuple[float, float]:
    """Variance of the systems' sum by noise between trainings, and its degrees of freedom; 0, 0 where it is unknown.

    Systems of one pool have one estimate between them, not one each.
    """
    parts: dict[tuple[float, int], float] = {}
    for one in systems:
        if not (degrees := freedom(one.groups)):
            return 0.0, 0.0
        key = variance(one.groups), degrees
        parts[key] = parts.get(key, 0.0) + key[0] / len(one.by_seed)
    squared = sum(parts.values())
    each = sum(part**2 / degrees for (_, degrees), part in parts.items())
    return squared, squared**2 / each if each else float(max(degrees for _, degrees in parts))


def of_systems(terms: Sequence[Sample]) -> list[Sample]:
    """The sum of the terms of each system."""
    ordered = sorted(terms, key=lambda one: one.system)
    return [sum(rest, first) for _, (first, *rest) in groupby(ordered, key=lambda one: one.system)]


def freedom(groups: Iterable[np.ndarray]) -> int:
    return sum(len(one) - 1 for one in groups)


def variance(groups: Sequence[np.ndarray]) -> float:
    """Pooled; zero where there is no group of two."""
    return float(sum(((one - one.mean()) ** 2).sum() for one in groups)) / max(1, freedom(groups))


def shared_with_seeds(one: Sample) -> float:
    """Of the variance over the sentences' resamples, the part that is noise between trainings."""
    if len(one.by_seed) < 2:
        return 0.0
    return float(one.draws.var(axis=1).mean() - one.draws.mean(axis=0).var()) / (len(one.by_seed) - 1)


def smaller_factor(a: Sample, b: Sample, c: Sample, d: Sample) -> Evidence:
    """By how much the logarithm of d / c exceeds that of b / a."""
    return contrast("logarithm of both factors' ratio", [(1, d), (-1, c), (-1, b), (1, a)], scale=np.log)


def tail(value: float, freedom: float) -> float:
    """P(t > value) of Student's t; scipy is loaded when something is judged: every dry run imports what judges."""
    from scipy.special import ndtr, stdtr

    return float(ndtr(-value) if np.isinf(freedom) else stdtr(freedom, -value))


def width(level: float, freedom: float) -> float:
    """Half of the interval that a t lies in with a probability of `level`."""
    from scipy.special import ndtri, stdtrit

    quantile = (1 + level) / 2
    return float(ndtri(quantile) if np.isinf(freedom) else stdtrit(freedom, quantile))

"""From measurements to a verdict: how sure it is that what a claim says is positive is positive.

A claim is turned into quantities that are positive if it is true: a difference, the distance from a bound. Each comes
with a distribution that counts two kinds of noise. Sentences are resampled, the same ones for every system and seed
(paired bootstrap). Trainings differ by their seed: with n >= 2 seeds, a Student t of n - 1 degrees of freedom times the
standard error over the seeds is added. With one seed the noise between trainings is unknown and is not counted; a
number that has no sentences to resample then has to differ by more than a stated resolution.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pipeline.errors import UserError
from pipeline.metrics.statistics.significance import RESAMPLES, SEED, Total, resampled


class Verdict(StrEnum):
    UPHELD = "upheld"
    NOT_DISTINGUISHABLE = "not distinguishable"
    CONTRADICTED = "contradicted"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Evidence:
    """A quantity that is positive if the claim is true, with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float
    p_value: float | None
    """One-sided: how often the quantity would come out at zero or below; None without any distribution."""

    def __str__(self) -> str:
        return f"{self.name} {self.value:+.3g}" + (
            "" if self.p_value is None else f" [{self.low:+.3g}, {self.high:+.3g}]"
        )


def verdict(evidence: Sequence[Evidence]) -> Verdict:
    """Upheld when every interval lies above zero, contradicted when one lies below, else not distinguishable."""
    if any(one.high < 0 for one in evidence):
        return Verdict.CONTRADICTED
    if evidence and all(one.low > 0 for one in evidence):
        return Verdict.UPHELD
    return Verdict.NOT_DISTINGUISHABLE


def over_seeds(name: str, values: Sequence[float], resolution: float = 0) -> Evidence:
    """Of one number a seed (or a repeat); a single one is known to within `resolution`."""
    if len(values) == 1:
        return Evidence(name, values[0], values[0] - resolution, values[0] + resolution, None)
    return of_draws(name, float(np.mean(values)), float(np.mean(values)) + seed_noise(values))


def within(name: str, values: Sequence[float], at_least: float, at_most: float | None) -> list[Evidence]:
    """How far one number a seed (or a repeat) lies above a bound, and below another."""
    found = [over_seeds(f"{name} above {at_least:g}", [value - at_least for value in values])]
    if at_most is not None:
        found.append(over_seeds(f"{name} below {at_most:g}", [at_most - value for value in values]))
    return found


def of_draws(name: str, value: float, draws: np.ndarray) -> Evidence:
    low, high = np.percentile(draws, [2.5, 97.5])
    return Evidence(name, value, float(low), float(high), float((np.sum(draws <= 0) + 1) / (len(draws) + 1)))


def seed_noise(values: Sequence[float] | np.ndarray, draws: int = RESAMPLES) -> np.ndarray:
    """Draws of the error of the mean of `values`; none (zeros) for a single one."""
    if len(values) < 2:
        return np.zeros(draws)
    error = np.std(values, ddof=1) / len(values) ** 0.5
    return error * np.random.default_rng(SEED).standard_t(len(values) - 1, draws)


@dataclass(frozen=True)
class Sample:
    """A metric of one system: by seed, and on each resample of the sentences, averaged over the seeds."""

    by_seed: np.ndarray
    draws: np.ndarray
    test_set: str

    @property
    def mean(self) -> float:
        return float(self.by_seed.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, of the sentences alone."""
        low, high = np.percentile(self.draws, [2.5, 97.5])
        return float(low), float(high)


def sample(statistics: Sequence[Sequence[np.ndarray]], total: Total, test_set: str) -> Sample:
    """statistics[seed][i] (N_i, F), the same i of the same sentences; the scores of a seed are averaged.

    i counts decodings of one test set, or test sets.

    Raises:
        UserError: the numbers of sentences differ between seeds.
    """
    if len({tuple(map(len, seed)) for seed in statistics}) != 1:
        raise UserError("can't compare scores of different numbers of sentences: they are not of one test set")
    by_seed = [np.mean([total(one.sum(axis=0)) for one in seed]) for seed in statistics]
    draws = [np.mean([resampled(one, total) for one in seed], axis=0) for seed in statistics]
    return Sample(np.array(by_seed), np.mean(draws, axis=0), test_set)


def difference(name: str, larger: Sample, smaller: Sample, margin: float = 0, sign: float = 1) -> Evidence:
    """sign * (larger - smaller) + margin, paired by sentence and by seed.

    Raises:
        UserError: they are of two test sets.
    """
    if larger.test_set != smaller.test_set:
        raise UserError(f"can't compare scores on {larger.test_set} and {smaller.test_set} ({name})")
    values = sign * (larger.by_seed - smaller.by_seed) + margin
    draws = sign * (larger.draws - smaller.draws) + margin + seed_noise(values)
    return of_draws(name, float(values.mean()), draws)


def smaller_factor(name: str, smaller: tuple[Sample, Sample], larger: tuple[Sample, Sample]) -> Evidence:
    """By how much the logarithm of the second pair's quotient exceeds the first's; pairs are (from, to).

    Raises:
        UserError: they are of several test sets.
    """
    if len({one.test_set for one in (*smaller, *larger)}) != 1:
        raise UserError(f"can't compare scores on several test sets ({name})")
    (a, b), (c, d) = smaller, larger
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(d.by_seed / c.by_seed) - np.log(b.by_seed / a.by_seed)
        draws = np.log(d.draws / c.draws) - np.log(b.draws / a.draws) + seed_noise(values)
    return of_draws(name, float(values.mean()), draws)


def above(name: str, measured: Sample, bound: float) -> Evidence:
    """How far a metric lies above a bound."""
    values = measured.by_seed - bound
    return of_draws(name, float(values.mean()), measured.draws - bound + seed_noise(values))

import math
import time

import numpy as np
import pytest

from pipeline.core.errors import UserError
from pipeline.metrics import metric_named
from pipeline.metrics.bleu import bleu
from pipeline.metrics.metric import bootstrap_interval, draw_counts, paired_bootstrap, percentile_interval, resampled


def accuracy(totals: np.ndarray) -> np.ndarray:
    return totals[..., 0] / totals[..., 1]


def answers(generator: np.random.Generator, rate: float, size: int) -> np.ndarray:
    """Statistics (size, 2) of right answers and answers."""
    return np.stack([generator.random(size) < rate, np.ones(size)], axis=1).astype(np.int32)


def test_the_interval_is_as_wide_as_theory_has_it():
    rows = answers(np.random.default_rng(1), 0.5, 2000)
    interval = bootstrap_interval(rows, accuracy)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * 0.5 / 2000**0.5, rel=0.1)
    assert interval.low < interval.value < interval.high
    assert interval.value == rows[:, 0].mean()


def test_an_infinite_score_has_an_infinite_end():
    """A sentence that a model gives no probability is in 64 % of the resamples of 51 sentences."""
    rows = np.array([[1e5, 1.0]] + [[2.0, 1.0]] * 50)
    metric = metric_named("perplexity")
    one, every = bootstrap_interval(rows, metric.total), bootstrap_interval(rows[:1].repeat(9, axis=0), metric.total)
    assert (one.low, one.high) == (pytest.approx(math.exp(2)), math.inf)
    assert (every.low, every.high) == (math.inf, math.inf)
    with pytest.raises(UserError, match="infinite"):
        paired_bootstrap(rows, rows[1:].repeat(2, axis=0)[:51], metric.total)


@pytest.mark.parametrize("others", [[], [math.inf] * 40])
def test_ends_of_scores_that_are_not_defined_are_nan(others):
    scores = np.array([math.nan, *others, *range(60)])
    assert np.isnan(percentile_interval(scores)).all() and np.isfinite(percentile_interval(scores[-60:])).all()


def test_each_resample_has_as_many_sentences_as_the_test_set():
    rows = np.ones((57, 2), dtype=np.int32)
    assert (resampled(rows, lambda totals: totals[:, 0], resamples=130) == 57).all()


def test_equally_long_test_sets_have_the_same_draws():
    rows = answers(np.random.default_rng(2), 0.5, 100)
    first = resampled(rows, accuracy)
    draw_counts.cache_clear()
    assert np.array_equal(first, resampled(rows, accuracy)) and len(set(first)) > 10


def test_paired_test_finds_what_unpaired_intervals_miss():
    generator = np.random.default_rng(3)
    a = answers(generator, 0.5, 1000)
    b = a.copy()
    b[generator.choice(np.flatnonzero(a[:, 0]), 15, replace=False), 0] = 0
    assert bootstrap_interval(b, accuracy).high > bootstrap_interval(a, accuracy).low
    found = paired_bootstrap(a, b, accuracy)
    assert found.difference == pytest.approx(0.015) and found.p_value < 0.01
    assert 0 < found.low < found.difference < found.high


def test_equal_systems_do_not_differ_significantly():
    """Under the null hypothesis p is uniform: of 100 pairs about 5 fall below 0.05."""
    generator = np.random.default_rng(4)
    pairs = [(answers(generator, 0.4, 200), answers(generator, 0.4, 200)) for _ in range(100)]
    below = sum(paired_bootstrap(a, b, accuracy, resamples=200).p_value < 0.05 for a, b in pairs)
    assert below <= 12
    same = pairs[0][0]
    assert paired_bootstrap(same, same, accuracy).p_value == 1


def test_systems_on_different_test_sets_are_not_compared():
    generator = np.random.default_rng(5)
    with pytest.raises(UserError, match="200 and 201 sentences"):
        paired_bootstrap(answers(generator, 0.5, 200), answers(generator, 0.5, 201), accuracy)


def test_newstest_is_resampled_in_under_a_second():
    rows = np.random.default_rng(6).integers(1, 30, size=(3003, 10)).astype(np.int32)
    started = time.process_time()
    bootstrap_interval(rows, bleu)
    assert time.process_time() - started < 1


def test_p_value_and_interval_match_normal_approximation():
    """In 5000 answers 100 differ, 60 in favour of one system: z = 2, p = 0.046 either way."""
    a, b = (np.ones((5000, 2), np.int32) for _ in "ab")
    b[:60, 0] = 0
    a[60:100, 0] = 0
    ahead, behind = paired_bootstrap(a, b, accuracy, resamples=4000), paired_bootstrap(b, a, accuracy, resamples=4000)
    for found in (ahead, behind):
        assert found.p_value == pytest.approx(0.046, abs=0.012)
        assert found.high - found.low == pytest.approx(2 * 1.96 * 10 / 5000, rel=0.06)
    assert ahead.difference == -behind.difference == pytest.approx(20 / 5000)

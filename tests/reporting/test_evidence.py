"""Intervals over sentences and seeds cover the truth as often as they say, and verdicts follow from them alone."""

import numpy as np
import pytest

from pipeline.errors import UserError
from pipeline.kinds.evidence import Evidence, Verdict, above, difference, over_seeds, sample, smaller_factor, verdict


def evidence(low, high):
    return Evidence("toy", (low + high) / 2, low, high, 0.5)


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([(0.1, 0.2), (0.3, 0.4)], Verdict.UPHELD),
        ([(0.1, 0.2), (-0.1, 0.4)], Verdict.NOT_DISTINGUISHABLE),
        ([(0.1, 0.2), (-0.4, -0.1)], Verdict.CONTRADICTED),
        ([(-0.1, 0.4), (-0.4, -0.1)], Verdict.CONTRADICTED),
        ([(0.0, 0.0)], Verdict.NOT_DISTINGUISHABLE),
        ([], Verdict.NOT_DISTINGUISHABLE),
    ],
)
def test_a_verdict_follows_from_the_intervals(intervals, expected):
    assert verdict([evidence(*interval) for interval in intervals]) == expected


def test_one_seed_without_sentences_is_known_to_within_the_resolution():
    found = over_seeds("toy", [0.3], resolution=0.125)
    assert (found.low, found.high, found.p_value) == (0.3 - 0.125, 0.3 + 0.125, None)


@pytest.mark.parametrize("seeds", [3, 6])
def test_the_interval_over_seeds_is_that_of_student(seeds):
    """Half width = quantile of t times the standard error; within the Monte Carlo error of 1000 draws."""
    quantile = {3: 4.303, 6: 2.571}[seeds]
    values = np.random.default_rng(seeds).normal(size=seeds)
    found = over_seeds("toy", values.tolist())
    half_width = quantile * values.std(ddof=1) / seeds**0.5
    assert (found.high - found.low) / 2 == pytest.approx(half_width, rel=0.25)
    assert found.value == pytest.approx(values.mean())


def mean_of(totals):
    return totals[..., 0] / totals[..., 1]


def statistics(generator, shift, sentences=100):
    values = generator.normal(shift, 1, sentences)
    return np.stack([values, np.ones(sentences)], axis=1)


def test_intervals_of_a_paired_difference_over_seeds_cover_the_truth():
    """True difference 0.5, noise of sentences and of trainings; 95 % intervals, 0.9 allows for 60 trials."""
    covered = 0
    for trial in range(60):
        generator = np.random.default_rng(trial)
        difficulty = generator.normal(size=(100, 1)) * (1, 0)
        systems = []
        for shift in (0.5, 0.0):
            trained = [shift + generator.normal(0, 0.1) for _ in range(3)]
            systems.append(sample([[statistics(generator, mean) + difficulty] for mean in trained], mean_of, "toy"))
        found = difference("toy", *systems)
        covered += found.low <= 0.5 <= found.high
    assert covered >= 0.9 * 60


def test_pairing_removes_what_sentences_have_in_common():
    generator = np.random.default_rng(0)
    hard = generator.normal(0, 10, (100, 1)) * (1, 0)
    rows = statistics(generator, 0) * (0.1, 1)
    found = difference(
        "toy", sample([[rows + hard + (0.3, 0)]], mean_of, "toy"), sample([[rows + hard]], mean_of, "toy")
    )
    assert found.low == pytest.approx(0.3)
    assert found.high == pytest.approx(0.3)


def test_scores_of_different_test_sets_are_not_compared():
    generator = np.random.default_rng(0)
    with pytest.raises(UserError, match="not of one test set"):
        sample([[statistics(generator, 0, 10)], [statistics(generator, 0, 11)]], mean_of, "toy")
    one, other = (sample([[statistics(generator, 0)]], mean_of, name) for name in ("newstest2013", "newstest2014"))
    with pytest.raises(UserError, match="newstest2013 and newstest2014"):
        difference("toy", one, other)


def test_p_is_how_often_the_quantity_would_not_be_positive():
    """Two standard errors above zero: 2.3 %; as far below: the rest. With draws of sentences that are normal."""
    rows = np.stack([np.random.default_rng(0).normal(0, 1, 400), np.ones(400)], axis=1)
    rows[:, 0] = (rows[:, 0] - rows[:, 0].mean()) / rows[:, 0].std()
    nothing = sample([[rows * (0, 1)]], mean_of, "toy")
    for shift, expected in ((0.1, 0.023), (-0.1, 0.977), (0.0, 0.5)):
        ours = sample([[rows + np.array([shift, 0])]], mean_of, "toy")
        for found in (difference("toy", ours, nothing), above("toy", ours, 0.0)):
            assert found.p_value == pytest.approx(expected, abs=0.05 if shift == 0 else 0.02)
            assert found.value == pytest.approx(shift)
            assert found.high - found.low == pytest.approx(2 * 1.96 / 20, rel=0.1)
        low, high = ours.interval
        assert (low, high) == pytest.approx((shift - 1.96 / 20, shift + 1.96 / 20), abs=0.015)


def test_an_interval_narrows_with_seeds():
    generator = np.random.default_rng(3)
    rows = [statistics(generator, 0.0, 50) * (0.01, 1) + ((-1) ** number, 0) for number in range(40)]
    nothing = statistics(generator, 0.0, 50) * (0, 1)
    widths = []
    for seeds in (2, 6, 10, 40):
        found = difference(
            "toy", *(sample([[one] for one in some], mean_of, "toy") for some in (rows[:seeds], [nothing] * seeds))
        )
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True) and widths[-1] < widths[1] / 2


def test_a_factor_between_quotients_is_that_of_their_logarithms():
    one, two, three, nine = (
        sample([[statistics(np.random.default_rng(0), 0) * (0, 1) + (value, 0)]], mean_of, "toy")
        for value in (1.0, 2.0, 3.0, 9.0)
    )
    assert smaller_factor("toy", (one, two), (one, three)).value == pytest.approx(np.log(1.5))
    assert smaller_factor("toy", (three, nine), (one, three)).value == pytest.approx(0, abs=1e-9)
    assert smaller_factor("toy", (one, nine), (one, three)).high < 0

"""Intervals over sentences and seeds have their nominal coverage, and count each source of noise once."""

import numpy as np
import pytest
from scipy import stats
from shifted_seeds import SHIFT

from pipeline.analysis.evidence import Sample, bootstrap_sample, contrast, over_seeds, smaller_factor, training_sample
from pipeline.core.errors import UserError
from pipeline.metrics.error_rates import WER
from pipeline.metrics.metric import success_rate


def difference(larger, smaller):
    return contrast("toy", [(1, larger), (-1, smaller)])


def test_deviation_of_one_number_is_unknown():
    found = over_seeds("toy", [0.3])
    assert (found.value, found.low, found.high, found.p_value) == (0.3, -np.inf, np.inf, None)


def test_error_is_unknown_if_all_seeds_are_equal():
    """Two groups of equal values, 6, 6, 6 and 4, 4, 4, have a positive variance."""
    found = difference(training_sample([6.0] * 3, "one"), training_sample([4.0] * 3, "other"))
    assert (found.value, found.error, found.p_value, found.low) == (2, None, None, -np.inf)
    one, other = np.array([5.0, 6.0, 7.0]), np.array([4.0] * 3)
    pool = (one, other)
    found = difference(training_sample(one, "one", pool), training_sample(other, "other", pool))
    assert found.p_value == pytest.approx(stats.t.sf(2 / (0.5 * 2 / 3) ** 0.5, 4))  # variances of 1 and 0


@pytest.mark.parametrize(("seeds", "squared_error"), [(2, 1 + 16 - 9), (4, 1 / 3 + 16 - 3)])
def test_sentence_variance_of_seeds_is_counted_once(seeds, squared_error):
    """The square of the error is s^2 / n + B - e^2 / n.

    Half the seeds score 1 and half -1. Resamples deviate by 4 in all seeds alike, and by 3 with the sign of each.
    """
    shared, own = np.array([4.0, -4.0, 4.0, -4.0]), np.array([3.0, 3.0, -3.0, -3.0])
    signs = np.array([1.0, -1.0] * (seeds // 2))
    found = contrast("toy", [(1, Sample(signs, shared + signs[:, None] * own, "toy"))])
    assert found.error**2 == pytest.approx(squared_error)


def test_sentence_variance_is_whole_if_seed_noise_is_unknown():
    """A system of another family has one seed: resamples of both seeds of the first deviate by 4 and by 3 as above."""
    shared, own, signs = np.array([4.0, -4.0, 4.0, -4.0]), np.array([3.0, 3.0, -3.0, -3.0]), np.array([1.0, 0.0])
    two = Sample(signs, shared + signs[:, None] * own, "toy", "two seeds")
    found = difference(two, Sample(np.zeros(1), np.zeros((1, 4)), "toy", "one seed"))
    assert (found.error, found.noise) == (pytest.approx((4**2 + 1.5**2) ** 0.5), "unknown and not counted")


@pytest.mark.parametrize("sentences", [1, 20, 60, 71, 73, 200])
def test_outputs_that_are_all_right_count_as_many_as_they_are(sentences):
    """If 95 % of all sentences were right, all of N would be with a probability of 0.95^N."""
    right = bootstrap_sample([[np.ones((sentences, 2))]] * 3, success_rate, "toy")
    found = contrast("toy", [(1, right)], -95)
    assert (found.p_value <= 0.025) == (0.95**sentences <= 0.025)


def test_one_sentence_distinguishes_no_systems():
    """Ten errors more in a hundred words, by seeds that are one error apart, may be of this sentence alone."""
    fewer, more = (
        bootstrap_sample([[np.array([[errors + seed, 100]])] for seed in range(3)], WER.total, "toy", str(errors))
        for errors in (20, 30)
    )
    assert difference(more, fewer).p_value > 0.4


@pytest.mark.parametrize("seeds", [3, 6])
def test_the_interval_over_seeds_is_that_of_student(seeds):
    values = np.random.default_rng(seeds).normal(size=seeds)
    found = over_seeds("toy", values.tolist())
    expected = stats.ttest_1samp(values, 0.0)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.p_value == pytest.approx(stats.ttest_1samp(values, 0.0, alternative="greater").pvalue)


def test_noise_is_pooled_over_the_systems_of_a_kind():
    groups = tuple(np.random.default_rng(1).normal(mean, 1, 5 - mean % 3) for mean in range(5))
    found = difference(training_sample(groups[1], "one", groups), training_sample(groups[0], "other", groups))
    within = sum(((group - group.mean()) ** 2).sum() for group in groups) / (5 + 4 + 3 + 5 + 4 - 5)
    error = (within * (1 / 4 + 1 / 5)) ** 0.5
    assert (found.degrees_of_freedom, found.error) == (pytest.approx(16), pytest.approx(error))
    assert found.p_value == pytest.approx(stats.t.sf((groups[1].mean() - groups[0].mean()) / error, 16))


def test_weights_add_no_degrees_of_freedom_to_a_shared_pool():
    """Shares of a gap weigh systems of one pool differently: F of the contrast in a one-way analysis of variance."""
    groups, weights = tuple(np.random.default_rng(4).normal(0, 1, (3, 4))), (0.3, 0.7, -1.0)
    samples = [training_sample(group, name, groups) for group, name in zip(groups, "abc", strict=True)]
    found = contrast("toy", list(zip(weights, samples, strict=True)))
    within = np.var(groups, axis=1, ddof=1).mean()
    explained = np.dot(weights, np.mean(groups, axis=1)) ** 2 / (np.square(weights).sum() / 4)
    assert 2 * min(found.p_value, 1 - found.p_value) == pytest.approx(stats.f.sf(explained / within, 1, 3 * 3))


def test_contrast_of_shared_trainings_uses_differences():
    """Two decodings of one system share the noise of its trainings, which cancels."""
    one = np.random.default_rng(2).normal(0, 5, 4)
    other = one + np.random.default_rng(3).normal(1, 0.1, 4)
    found = difference(training_sample(other, "same", (one,)), training_sample(one, "same", (one,)))
    expected = stats.ttest_rel(other, one, alternative="greater")
    assert (found.p_value, found.degrees_of_freedom) == (pytest.approx(expected.pvalue), pytest.approx(3))


def mean_of(totals):
    return totals[..., 0] / totals[..., 1]


def statistics(generator, shift, sentences=100):
    values = generator.normal(shift, 1, sentences)
    return np.stack([values, np.ones(sentences)], axis=1)


def test_intervals_of_paired_differences_cover_the_truth():
    """95 % of 200 intervals cover the true difference, 0.5, within three standard errors."""
    covered = 0
    for trial in range(200):
        generator = np.random.default_rng(trial)
        difficulty = generator.normal(size=(100, 1)) * (1, 0)
        systems = []
        for shift in (0.5, 0.0):
            trained = [shift + generator.normal(0, 0.1) for _ in range(3)]
            rows = [[statistics(generator, mean) + difficulty] for mean in trained]
            systems.append(bootstrap_sample(rows, mean_of, "toy", f"system {shift}"))
        found = difference(*systems)
        covered += found.low <= 0.5 <= found.high
    assert 0.9 * 200 <= covered <= 0.995 * 200


@pytest.mark.parametrize(("sets", "share"), [(1, 1.0), (2, 0.5)])
def test_two_test_sets_are_resampled_independently(sets, share):
    """The mean of two sets has half the variance of one, also if their sentences have one order of difficulty.

    Two decodings of one set are resampled in pairs, so that their mean varies as each.
    """
    rows = statistics(np.random.default_rng(7), 0.0)
    one, two = (bootstrap_sample([[rows] * count], mean_of, "toy", sets=sets) for count in (1, 2))
    assert two.draws.var() / one.draws.var() == pytest.approx(share, abs=0.1)


def test_pairing_removes_what_sentences_have_in_common():
    generator = np.random.default_rng(0)
    hard = generator.normal(0, 10, (100, 1)) * (1, 0)
    rows = statistics(generator, 0) * (0.1, 1) + hard
    one, other = (bootstrap_sample([[np.add(rows, (shift, 0))]], mean_of, "toy", f"{shift}") for shift in (0.3, 0.0))
    found = difference(one, other)
    assert (found.value, found.error) == (pytest.approx(0.3), pytest.approx(0, abs=1e-9))


def test_sentences_add_no_noise_that_is_already_of_the_seeds():
    """Independent seeds differ by their sentences, too: the variance between seeds has counted it."""
    generator = np.random.default_rng(5)
    rows = [statistics(generator, 0.0) for _ in range(20)]
    found = contrast("toy", [(1, bootstrap_sample([[one] for one in rows], mean_of, "toy", "ours"))])
    expected = np.std([mean_of(one.sum(axis=0)) for one in rows], ddof=1) / 20**0.5
    # The variance of 100 sentences is known up to a seventh of it, which leaves a rest.
    assert found.error == pytest.approx(expected, rel=0.35 if SHIFT else 0.05)


def test_scores_of_different_test_sets_are_not_compared():
    ten, eleven = ([statistics(np.random.default_rng(0), 0, count)] for count in (10, 11))
    with pytest.raises(UserError, match="numbers of sentences differ"):
        bootstrap_sample([ten, eleven], mean_of, "toy")
    for (one, first), (other, second), said in (
        ((ten, "newstest2013"), (ten, "newstest2014"), "newstest2013 and newstest2014"),
        ((ten, "toy"), (eleven, "toy"), "10 sentences and 11 sentences"),
    ):
        with pytest.raises(UserError, match=said):
            difference(bootstrap_sample([one], mean_of, first), bootstrap_sample([other], mean_of, second))


def test_p_is_how_often_the_quantity_would_not_be_positive():
    """Two standard errors above zero give 2.3 %, as far below the rest, for normal draws."""
    rows = np.stack([np.random.default_rng(0).normal(0, 1, 400), np.ones(400)], axis=1)
    rows[:, 0] = (rows[:, 0] - rows[:, 0].mean()) / rows[:, 0].std()
    nothing = bootstrap_sample([[rows * (0, 1)]], mean_of, "toy", "nothing")
    for shift, expected in ((0.1, 0.023), (-0.1, 0.977), (0.0, 0.5)):
        ours = bootstrap_sample([[rows + np.array([shift, 0])]], mean_of, "toy", "ours")
        for found in (difference(ours, nothing), contrast("toy", [(1, ours)])):
            assert found.p_value == pytest.approx(expected, abs=0.05 if shift == 0 else 0.02)
            assert found.value == pytest.approx(shift)
            assert found.high - found.low == pytest.approx(2 * 1.96 / 20, rel=0.1)
        low, high = ours.interval
        assert (low, high) == pytest.approx((shift - 1.96 / 20, shift + 1.96 / 20), abs=0.015)


def test_a_factor_between_quotients_is_that_of_their_logarithms():
    rows = statistics(np.random.default_rng(0), 0) * (0, 1)
    one, two, three, nine, again = (
        bootstrap_sample([[np.add(rows, (value, 0))]], mean_of, "toy", str(number))
        for number, value in enumerate((1.0, 2.0, 3.0, 9.0, 1.0))
    )
    assert smaller_factor(one, two, again, three).value == pytest.approx(np.log(1.5))
    assert smaller_factor(three, nine, one, three).value == pytest.approx(0, abs=1e-9)
    assert smaller_factor(one, nine, again, three).value == pytest.approx(-np.log(3))


@pytest.mark.parametrize("seeds", [1, 2])
def test_factor_is_not_certain_if_a_resample_scores_zero(seeds):
    """One utterance of forty has an error: a third of the resamples lack it, and zero has no logarithm."""
    systems = []
    for name, wrong in (("a", 1), ("b", 2), ("c", 3), ("d", 12)):
        rows = [np.stack([2.0 * (np.arange(40) < wrong + seed), np.full(40, 10.0)], axis=1) for seed in range(seeds)]
        systems.append(bootstrap_sample([[one] for one in rows], mean_of, "toy", name))
    found = smaller_factor(*systems)
    assert (found.error, found.p_value, found.noise) == (None, None, "unknown and not counted")
    assert found.value > 0

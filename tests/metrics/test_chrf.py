"""chrF against sacreBLEU's own corpus score, and its resamples against the corpora that they stand for."""

import random

import numpy as np
import pytest
import sacrebleu

from pipeline.metrics import metric_named
from pipeline.metrics.metric import Texts, Translations

CHRF = metric_named("chrf")


def lines(count: int, seed: int, longest: int) -> list[str]:
    """Random text, some lines too short for every order, some empty."""
    generator = random.Random(seed)

    def word() -> str:
        return "".join(generator.choices("abcdeé我.", k=generator.randint(1, 7)))

    return [" ".join(word() for _ in range(generator.randint(0, longest))) for _ in range(count)]


def translations(hypotheses: list[str], *references: list[str]) -> Translations:
    return Translations(raw=Texts(hypotheses, list(references)), tokenised=Texts([], []))


@pytest.mark.parametrize("references", [1, 3])
@pytest.mark.parametrize("longest", [1, 12])
def test_chrf_equals_sacrebleu_with_its_signature(references, longest):
    hypotheses, others = lines(60, 0, longest), [lines(60, seed, longest) for seed in range(1, 1 + references)]
    texts, theirs = translations(hypotheses, *others), sacrebleu.CHRF()
    rows = CHRF.statistics(texts)
    assert rows.shape == (60, 18)
    expected = theirs.corpus_score(hypotheses, others).score
    assert CHRF.total(rows.sum(axis=0)) == pytest.approx(expected, abs=1e-9)
    assert CHRF.signature(texts) == f"text:raw|beta:2|{theirs.get_signature()}"


def test_many_corpora_at_once_have_the_scores_of_each():
    hypotheses, reference = lines(40, 3, 8), lines(40, 4, 8)
    rows = CHRF.statistics(translations(hypotheses, reference))
    chosen = np.random.default_rng(0).integers(40, size=(25, 10))
    expected = [
        sacrebleu.corpus_chrf([hypotheses[i] for i in part], [[reference[i] for i in part]]).score for part in chosen
    ]
    np.testing.assert_allclose(CHRF.total(rows[chosen].sum(axis=1)), expected, atol=1e-9)


def test_chrf_is_0_without_overlap_and_100_for_the_reference():
    for hypothesis, score in (("xyz", 0), ("", 0), ("abc d", 100)):
        assert CHRF.total(CHRF.statistics(translations([hypothesis], ["abc d"])).sum(axis=0)) == pytest.approx(score)

"""Beam search with a language model beside the model (Cold Fusion, eq. 2)."""

import itertools

import pytest
from markov import Markov, sentences
from random_lm import language_model, log_prob

from pipeline.config import DecodingConfig
from pipeline.models.settings import EOS, UNK
from pipeline.search.beam_search import beam_search
from pipeline.search.interface import ExternalLM

VOCABULARY = 6


def config(beam_size: int) -> DecodingConfig:
    return DecodingConfig(beam_size=beam_size, length_normalisation="none", max_extra_length=1)


def test_a_wide_beam_finds_the_best_sum_of_both_models():
    model, lm = Markov(VOCABULARY, sentences=4, seed=1), language_model(VOCABULARY, seed=1)
    lengths, weight = [3, 1, 0, 2], 0.6
    found = beam_search(model, sentences(lengths), config(130), n_best=3, external_lm=ExternalLM(lm, weight))
    for sentence, hypotheses in enumerate(found):
        total = {
            output: model.log_prob(sentence, [*output, EOS]) + weight * log_prob(lm, [*output, EOS])
            for length in range(lengths[sentence] + 2)
            for output in itertools.product((UNK, 4, 5), repeat=length)
        }
        best = sorted(total, key=total.__getitem__, reverse=True)[:3]
        assert [tuple(hypothesis.tokens) for hypothesis in hypotheses] == best
        scores = [hypothesis.score for hypothesis in hypotheses]
        assert scores == pytest.approx([total[output] for output in best], abs=1e-4)


def test_a_language_model_of_no_weight_leaves_plain_search():
    model, lm = Markov(VOCABULARY, sentences=20, seed=2), language_model(VOCABULARY, seed=2)
    batch = sentences(list(range(20)))
    assert beam_search(model, batch, config(4), external_lm=ExternalLM(lm, 0.0)) == beam_search(model, batch, config(4))


def test_hypotheses_keep_their_lm_state_when_the_beam_reorders():
    """Each finished hypothesis has the score of its own symbols, read again."""
    model, lm = Markov(VOCABULARY + 3, sentences=10, seed=3), language_model(VOCABULARY + 3, seed=3)
    found = beam_search(model, sentences([9] * 10), config(5), n_best=5, external_lm=ExternalLM(lm, 0.8))
    for sentence, hypotheses in enumerate(found):
        for hypothesis in hypotheses:
            symbols = [*hypothesis.tokens, EOS]
            total = model.log_prob(sentence, symbols) + 0.8 * log_prob(lm, symbols)
            assert hypothesis.score == pytest.approx(total, abs=1e-3)

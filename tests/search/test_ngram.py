"""The smoothed n-gram against numbers counted by hand."""

import numpy as np
import pytest
import torch

from pipeline.models.language_model.model import Ngram
from pipeline.models.settings import BOS, EOS, PAD, UNK
from pipeline.search.ctc_prefix_search import TextScores, prefix_search
from pipeline.search.interface import ExternalLM

A, B = EOS + 1, EOS + 2
VOCAB = EOS + 3
TEXTS = [np.array([A, B]), np.array([A, A])]


def probs(model, *context):
    return model.log_probs(tuple(context)).exp()


def test_a_bigram_is_witten_and_bells_by_hand():
    """The text A B EOS A A EOS has three kinds and six symbols: A 3, B 1, EOS 2; below it a third each. After A come
    B, A and EOS once each, after BOS twice A."""
    model = Ngram(2, VOCAB, TEXTS)
    unigram = probs(model)
    assert unigram[[A, B, EOS]].tolist() == pytest.approx([4 / 9, 2 / 9, 3 / 9])
    assert probs(model, A)[[A, B, EOS]].tolist() == pytest.approx([(1 + 12 / 9) / 6, (1 + 6 / 9) / 6, 2 / 6])
    assert float(probs(model, BOS)[A]) == pytest.approx((2 + 4 / 9) / 3)


@pytest.mark.parametrize("order", [2, 3, 5])
def test_ngram_sums_to_one_and_backs_off_for_unseen_contexts(order):
    rng = np.random.default_rng(0)
    model = Ngram(order, VOCAB, [rng.integers(A, VOCAB, rng.integers(1, 9)) for _ in range(20)])
    for context in ((), (A,), (BOS,) * (order - 1), (B,) * (order - 1)):
        assert float(probs(model, *context).sum()) == pytest.approx(1, abs=1e-5)
    longer = Ngram(3, VOCAB, TEXTS)
    assert torch.equal(longer.log_probs((B, A)), longer.log_probs((A,)))  # nothing was seen after B A


@pytest.mark.parametrize("order", [2, 6])
def test_unwritten_symbols_are_no_outliers_as_features(order):
    """A fusion of logits reads log-probabilities less the largest one; a neural model gives about -12 for these."""
    rng = np.random.default_rng(order)
    model = Ngram(order, 40, [rng.integers(A, 40, 12) for _ in range(50)])
    for context in [(BOS,) * (order - 1), *map(tuple, rng.integers(A, 40, (20, order - 1)).tolist())]:
        feature = model.log_probs(context) - model.log_probs(context).max()
        assert (feature[[PAD, UNK, BOS]] > -14).all()
        assert feature[[PAD, UNK, BOS]].max() < feature[A:].min()


def test_its_steps_add_up_to_the_texts_probability():
    model = Ngram(3, VOCAB, TEXTS)
    cache, total = model.initial_cache(1), 0.0
    for read, symbol in zip([BOS, A, B], [A, B, EOS], strict=True):
        states, cache = model.advance(torch.tensor([[read]]), cache)
        total += float(model.logits(states)[0, 0, symbol])
    expected = [model.log_probs((BOS, BOS))[A], model.log_probs((BOS, A))[B], model.log_probs((A, B))[EOS]]
    assert total == pytest.approx(float(sum(expected)))


def test_ngram_weights_texts_unless_its_weight_is_zero():
    """Two frames between A and B alone, nearly even: the n-gram, which knows `A B` and `A A`, decides against `B A`."""
    log_probs = torch.full((1, 2, VOCAB), -1e4)
    log_probs[0, 0, [A, B]], log_probs[0, 1, [A, B]] = torch.tensor([0.4, 0.6]).log(), torch.tensor([0.6, 0.4]).log()
    found = {}
    for weight in (0.0, 2.0):
        scores = TextScores(ExternalLM(Ngram(3, VOCAB, TEXTS), weight), 0.0, EOS)
        (best,) = prefix_search(log_probs, torch.tensor([2]), 9, scores)
        found[weight] = best.tokens
    assert found == {0.0: [B, A], 2.0: [A, B]}

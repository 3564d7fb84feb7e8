"""Prefix search against the sum over all paths of every text."""

import itertools
import math
from collections import defaultdict

import pytest
import torch
from random_lm import language_model, log_prob

from pipeline.models.ctc.model import collapse
from pipeline.models.settings import EOS
from pipeline.search.ctc_prefix_search import BLANK, TextScores, prefix_search
from pipeline.search.interface import ExternalLM

SPACE, A, B = EOS + 1, EOS + 2, EOS + 3
VOCABULARY = EOS + 4
WIDE = 130
"""More than there are texts of four frames and three symbols, 121."""


def random_log_probs(utterances: int, frames: int, seed: int = 0) -> torch.Tensor:
    torch.manual_seed(seed)
    logits = 2 * torch.randn(utterances, frames, VOCABULARY)
    logits[..., BLANK + 1 : EOS + 1] = -torch.inf
    return logits.log_softmax(-1)


def texts(log_probs: torch.Tensor) -> dict[tuple[int, ...], float]:
    """log P_CTC of every text, log_probs (S, V)."""
    found = defaultdict(float)
    for path in itertools.product((BLANK, SPACE, A, B), repeat=len(log_probs)):
        found[tuple(collapse(list(path)))] += float(log_probs[range(len(path)), path].sum().exp())
    return {text: math.log(probability) for text, probability in found.items()}


def words(text: tuple[int, ...]) -> int:
    return sum(not is_space for is_space, _ in itertools.groupby(text, lambda symbol: symbol == SPACE))


@pytest.mark.parametrize("weight", [0.0, 0.7])
@pytest.mark.parametrize("bonus", [0.0, 1.5])
def test_a_wide_beam_finds_the_best_of_all_texts(weight, bonus):
    lengths = torch.tensor([4, 3, 4, 1])
    log_probs = random_log_probs(4, 4)
    lm = language_model(VOCABULARY, seed=1)
    prior = ExternalLM(lm, weight) if weight else None
    found = prefix_search(log_probs, lengths, WIDE, TextScores(prior, bonus, SPACE))
    for row, length in enumerate(lengths.tolist()):
        ctc = texts(log_probs[row, :length])
        total = {text: value + weight * log_prob(lm, [*text, EOS]) + bonus * words(text) for text, value in ctc.items()}
        best = max(total, key=total.__getitem__)
        assert tuple(found[row].tokens) == best
        assert found[row].score == pytest.approx(total[best], abs=1e-4)
        assert found[row].log_prob == pytest.approx(ctc[best], abs=1e-4)


def test_search_without_lm_or_word_bonus_scores_no_prefix(monkeypatch):
    monkeypatch.setattr(TextScores, "next_scores", None)
    (found,) = prefix_search(random_log_probs(1, 12), torch.tensor([12]), 5, TextScores(None, 0.0, SPACE))
    assert found.tokens and found.score == found.log_prob


def test_ctc_prefix_that_reenters_the_beam_joins_its_children():
    """Whatever is pruned on the way, no text is held twice: a wider beam is never worse, no probability above 1."""
    log_probs, lengths = random_log_probs(40, 14, seed=3), torch.full((40,), 14)
    scores = [
        [hypothesis.score for hypothesis in prefix_search(log_probs, lengths, size, TextScores(None, 0.0, SPACE))]
        for size in (3, 60)
    ]
    assert all(narrow <= wide + 1e-4 for narrow, wide in zip(*scores, strict=True))
    assert all(score <= 1e-5 for score in scores[1])


def test_utterances_are_searched_alike_in_any_company():
    log_probs, lengths = random_log_probs(4, 8, seed=4), torch.tensor([8, 2, 5, 8])
    prior = ExternalLM(language_model(VOCABULARY, seed=2), 0.5)
    together = prefix_search(log_probs, lengths, 4, TextScores(prior, 0.3, SPACE))
    for row, length in enumerate(lengths.tolist()):
        alone = prefix_search(
            log_probs[row : row + 1, :length], lengths[row : row + 1], 4, TextScores(prior, 0.3, SPACE)
        )
        assert alone[0].tokens == together[row].tokens
        assert alone[0].score == pytest.approx(together[row].score, abs=1e-4)

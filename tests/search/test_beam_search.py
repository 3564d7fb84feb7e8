import itertools
import math

import numpy as np
import pytest
import torch
from markov import Markov, sentences

from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.search.beam_search import Search, beam_search
from pipeline.search.interface import output_limits

VOCABULARY = 5  # PAD, UNK, BOS, EOS and one word
NORMALISATIONS = ["gnmt", "length", "none"]


def penalty(length: int, config: DecodingConfig) -> float:
    formulas = {"gnmt": ((5 + length) / 6) ** config.length_penalty, "length": length**config.length_penalty, "none": 1}
    return formulas[config.length_normalisation]


def exhaustive(model: Markov, sentence: int, limit: int, config: DecodingConfig) -> list[tuple[float, list[int]]]:
    """All outputs of at most `limit` symbols, best first."""
    words = [symbol for symbol in range(model.tables.shape[-1]) if symbol not in (PAD, BOS, EOS)]
    found = []
    for length in range(limit + 1):
        for output in itertools.product(words, repeat=length):
            log_prob = model.log_prob(sentence, [*output, EOS])
            found.append((log_prob / penalty(length + 1, config), list(output)))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_is_exhaustive_search(normalisation, seed):
    config = DecodingConfig(beam_size=130, length_normalisation=normalisation, max_extra_length=1)
    model = Markov(VOCABULARY + 1, sentences=4, seed=seed)
    lengths = [3, 1, 0, 2]
    found = beam_search(model, sentences(lengths), config, n_best=5)
    for sentence, hypotheses in enumerate(found):
        expected = exhaustive(model, sentence, lengths[sentence] + 1, config)[:5]
        assert [hypothesis.tokens for hypothesis in hypotheses] == [output for _, output in expected]
        for first, (score, output) in zip(hypotheses, expected, strict=True):
            assert first.score == pytest.approx(score, abs=1e-5)
            assert first.log_prob == pytest.approx(model.log_prob(sentence, [*output, EOS]), abs=1e-5)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_a_beam_of_one_is_greedy_search(normalisation):
    config = DecodingConfig(beam_size=1, length_normalisation=normalisation, max_extra_length=6)
    model, batch = Markov(12, sentences=30, seed=1), sentences(list(range(30)))
    found = beam_search(model, batch, config)
    assert [hypotheses[0].tokens for hypotheses in found] == [model.greedy(n, n + 6) for n in range(30)]


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_stopping_early_leaves_the_best_hypotheses_as_they_are(normalisation):
    """If `n_best` is above what a beam can finish, the bound never holds and the search runs until K have finished."""
    config = DecodingConfig(beam_size=4, length_normalisation=normalisation, max_extra_length=5)
    model, batch = Markov(9, sentences=40, seed=2), sentences([8] * 40)
    early = beam_search(model, batch, config)
    rows_early, model.rows = model.rows, 0
    late = beam_search(model, batch, config, n_best=50)
    assert [hypotheses[0] for hypotheses in early] == [hypotheses[0] for hypotheses in late]
    assert rows_early < model.rows


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_beam_search_finds_a_long_output_after_short_ones_finish(normalisation):
    """One symbol after another at 0.9, with 0.1 for the end at each place: 0.9^9 is more than 0.1."""
    config = DecodingConfig(beam_size=3, length_normalisation=normalisation, max_extra_length=8, length_penalty=0.3)
    model = Markov(12, sentences=1, seed=0)
    model.tables[:] = -40.0
    chain = [BOS, *range(EOS + 1, 12), EOS]
    for symbol, following in itertools.pairwise(chain):
        model.tables[..., symbol, EOS] = math.log(0.1)
        model.tables[..., symbol, following] = math.log(0.9)
    (found,) = beam_search(model, sentences([2]), config)
    assert found[0].tokens == chain[1:-1]


def test_a_sentence_is_decoded_alike_in_any_company():
    """Neither the others of the batch, nor their order, nor their retirement matter; the fake's arithmetic is exact."""
    config = DecodingConfig(beam_size=3, max_extra_length=4)
    model = Markov(9, sentences=12, seed=3)
    batch = sentences([4, 9, 1, 12, 0, 7, 3, 3, 20, 2, 5, 6])
    together = beam_search(model, batch, config, n_best=3)
    order = torch.randperm(12).tolist()
    assert beam_search(model, batch.pick(order), config, n_best=3) == [together[row] for row in order]
    assert [beam_search(model, batch.pick([row]), config, n_best=3)[0] for row in range(12)] == together


def test_finished_sentences_leave_the_batch():
    model, batch = Markov(6, sentences=2, seed=0), sentences([0, 40])
    model.tables[0, ..., EOS], model.tables[1, ..., EOS] = 30.0, -30.0
    beam_search(model, batch, DecodingConfig(beam_size=2, max_extra_length=5))
    assert model.steps == 46
    assert model.rows == 47  # one position of two sentences, then 45 of the longer alone


def test_outputs_may_be_fifty_symbols_longer_than_their_source():
    """Section 6.1 of Attention Is All You Need; EOS counts on neither side."""
    src = torch.tensor([[7, 8, 9, EOS], [7, EOS, PAD, PAD]])
    limits = output_limits(Markov(VOCABULARY, sentences=2, seed=0), TextBatch(src, src, src), 50)
    assert limits.tolist() == [3 + 50, 1 + 50]


@pytest.mark.parametrize("positions", [1, 2, 4, 100])
def test_outputs_end_where_the_model_has_no_more_positions(positions):
    config = DecodingConfig(beam_size=130, max_extra_length=2)
    model = Markov(VOCABULARY + 1, 2, seed=3, max_positions=positions)
    found = beam_search(model, sentences([1, 2]), config)
    for sentence, limit in enumerate((3, 4)):
        assert found[sentence][0].tokens == exhaustive(model, sentence, min(limit, positions - 1), config)[0][1]


def test_a_diverged_model_is_named():
    model = Markov(8, sentences=3, seed=6)
    model.tables[1] = torch.nan
    with pytest.raises(UserError, match="training diverged"):
        beam_search(model, sentences([2, 2, 2]), DecodingConfig(max_extra_length=2))


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
def test_search_ends_once_no_output_up_to_the_limit_can_win(normalisation):
    """The longest output has `limit` symbols and EOS, so its score is at most log_prob / penalty(limit + 1).

    Some sentences have left the search before.
    """
    config = DecodingConfig(beam_size=4, length_penalty=0.9, length_normalisation=normalisation)
    draw = np.random.default_rng(1)
    limits, log_probs = draw.integers(1, 30, 40), -draw.uniform(1, 20, 40)
    for margin, settled in ((0.999, True), (1.001, False)):
        search = Search(limits, config, n_best=1)
        search.tokens.append(np.zeros((len(limits), config.beam_size), dtype=np.int64))
        best = [log_prob / penalty(int(limit) + 1, config) for limit, log_prob in zip(limits, log_probs, strict=True)]
        search.best_scores[:, 0] = np.array(best) * margin
        search.active = np.flatnonzero(draw.random(len(limits)) < 0.7)
        assert (search.done(log_probs[search.active]) == settled).all()

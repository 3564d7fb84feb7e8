"""Selection and ranking of hypotheses: length penalty and the joint search of attention and CTC."""

import itertools

import pytest
import torch

from pipeline.models.ctc.model import collapse
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.search.beam import best_continuations
from pipeline.search.beam_search import length_penalty
from pipeline.search.ctc_prefix_search import BLANK, TextScores, joint_search, prefix_search


@pytest.mark.parametrize("vocabulary", [5, 64, 2048, 8000, 8001, 8063])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_continuations_are_those_of_a_full_sort(vocabulary, count):
    scores, log_probs = torch.randn(3, 4, vocabulary), -torch.rand(3, 4)
    scores[..., 0] = -torch.inf
    scores[0, 0, -1] = 100.0
    log_probs[1, 2] = -torch.inf
    found = best_continuations(scores, log_probs, count)
    table = (scores + log_probs.unsqueeze(-1)).flatten(1)
    assert torch.equal(found.log_probs, table.sort(1, descending=True).values[:, :count])
    assert torch.equal(found.log_probs, table.gather(1, found.parents * vocabulary + found.tokens))


def test_missing_continuations_have_no_probability():
    logits = torch.zeros(1, 1, 3)
    found = best_continuations(logits.log_softmax(-1), torch.zeros(1, 1), 5)
    assert found.log_probs.isfinite().tolist() == [[True, True, True, False, False]]


def test_unknown_normalisation_names_those_allowed():
    with pytest.raises(ValueError, match="gnmt, length or none, got 'wu'"):
        length_penalty(9, 0.6, "wu")


A, B = EOS + 1, EOS + 2
VOCAB, FRAMES = EOS + 3, 4


class TableModel:
    """Random probabilities of both kinds: CTC's a position, and attention's of each text whatever the position."""

    def __init__(self, seed: int):
        generator = torch.Generator().manual_seed(seed)
        logits = 2 * torch.randn(1, FRAMES, VOCAB, generator=generator)
        logits[..., BLANK + 1 : EOS + 1] = -torch.inf
        self.frames = logits.log_softmax(-1)
        self.table = (2 * torch.randn(VOCAB, VOCAB, generator=generator)).log_softmax(-1)

    def encode_batch(self, batch):
        return self.frames, torch.ones(1, FRAMES, dtype=torch.bool), None

    def log_probs(self, encoded):
        return encoded

    def text_log_probs(self, encoded, real, tgt_in, tgt_out):
        return self.table[tgt_in, tgt_out].masked_fill(tgt_out == PAD, 0.0).sum(-1)

    def likelihood(self, text: tuple[int, ...]) -> float:
        return float(sum(self.table[a, b] for a, b in itertools.pairwise((BOS, *text, EOS))))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_a_wide_beam_finds_the_best_weighted_sum_of_all_texts(seed, weight):
    model, ctc = TableModel(seed), {}
    for path in itertools.product((BLANK, A, B), repeat=FRAMES):
        text = tuple(collapse(list(path)))
        ctc[text] = ctc.get(text, 0.0) + float(model.frames[0, range(FRAMES), path].sum().exp())
    logs = {text: float(torch.tensor(value).log()) for text, value in ctc.items()}
    total = {text: weight * value + (1 - weight) * model.likelihood(text) for text, value in logs.items()}
    best = max(total, key=total.__getitem__)
    (found,) = joint_search(model, None, 60, weight, TextScores(None, 0.0, A))
    assert tuple(found.tokens) == best
    assert found.score == pytest.approx(total[best], abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_recording_without_any_symbol_has_an_empty_text(beam_size):
    model = TableModel(1)
    model.frames = torch.full_like(model.frames, -torch.inf)
    model.frames[..., BLANK] = 0.0
    (found,) = joint_search(model, None, beam_size, 0.4, TextScores(None, 0.0, A))
    assert found.tokens == [] and found.log_prob == 0.0
    assert found.score == pytest.approx(0.6 * model.likelihood(()), abs=1e-4)


def test_joint_search_with_ctc_alone_is_prefix_search():
    model, scores = TableModel(7), TextScores(None, 0.3, A)
    assert joint_search(model, None, 5, 1.0, scores) == prefix_search(model.frames, torch.tensor([FRAMES]), 5, scores)

import pytest
import torch

from pipeline.search.selection import best_continuations


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


def test_continuations_are_ranked_by_the_whole_hypothesis():
    logits, log_probs = torch.randn(5, 3, 700), -torch.rand(5, 3) * 3
    found = best_continuations(logits.log_softmax(-1), log_probs, 6)
    table = (logits.log_softmax(-1) + log_probs.unsqueeze(-1)).flatten(1)
    torch.testing.assert_close(found.log_probs, table.topk(6).values)
    torch.testing.assert_close(table.gather(1, found.parents * 700 + found.tokens), found.log_probs)


def test_missing_continuations_have_no_probability():
    logits = torch.zeros(1, 1, 3)
    found = best_continuations(logits.log_softmax(-1), torch.zeros(1, 1), 5)
    assert found.log_probs.isfinite().tolist() == [[True, True, True, False, False]]

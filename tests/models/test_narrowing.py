"""Weights in a narrower type, kept between the positions of a search."""

import torch

from pipeline.models.layers.narrowing import kept


@torch.no_grad()
def test_weights_are_cast_anew_when_one_was_changed_and_not_before():
    weights = [torch.nn.Parameter(torch.randn(3, 2)), torch.nn.Parameter(torch.randn(2))]
    first = kept(torch.bfloat16, weights)
    assert [one.equal(weight.to(torch.bfloat16)) for one, weight in zip(first, weights, strict=True)] == [True, True]
    assert kept(torch.bfloat16, weights) is first
    weights[1].mul_(2)
    second = kept(torch.bfloat16, weights)
    assert second is not first and second[1].equal(weights[1].to(torch.bfloat16))
    assert kept(torch.float16, weights)[0].dtype == torch.float16

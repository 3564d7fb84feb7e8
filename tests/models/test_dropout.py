import pytest
import torch
from gradients import with_gradients

from pipeline.models.kernels.dropout import keep_mask
from pipeline.models.layers.regularisation import dropout, dropout_add, relu_dropout

SIZE = 400_000


@pytest.mark.parametrize("probability", [0.01, 0.1, 0.3, 0.5, 0.9])
def test_mask_is_all_or_nothing_and_drops_by_the_probability(probability):
    """The bound is six standard deviations of a mean of independent draws."""
    mask = keep_mask(torch.Size([SIZE]), probability)
    assert set(mask.unique().tolist()) == {0, -1}
    assert abs(-mask.double().mean().item() - (1 - probability)) < 6 * (probability * (1 - probability) / SIZE) ** 0.5


def test_elements_and_neighbouring_calls_are_uncorrelated():
    """Distances are small or one row of a layer; the bound is six standard deviations."""
    first, second = (-keep_mask(torch.Size([SIZE]), 0.3).double() - 0.7 for _ in range(2))
    for lag in (1, 2, 3, 8, 64, 256, 1024):
        assert abs((first[lag:] * first[:-lag]).mean().item()) < 6 * 0.3 * 0.7 / SIZE**0.5
    assert abs((first * second).mean().item()) < 6 * 0.3 * 0.7 / SIZE**0.5


def test_probability_does_not_depend_on_the_place():
    """0.1 is no multiple of 1/128: every call draws new thresholds, so that no place keeps a wrong one.

    Places that kept theirs would differ by 1.22 times the variance of independent draws; the bound is six standard
    deviations of what is found of that.
    """
    kept = sum(keep_mask(torch.Size([4096]), 0.1).neg().double() for _ in range(2000)) / 2000
    assert (kept - 0.9).square().mean() / (0.09 / 2000) < 1 + 6 * (2 / 4096) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_gradients_follow_the_mask(dtype):
    residual, x = (torch.randn(50, 30, dtype=dtype, requires_grad=True) for _ in range(2))
    out = dropout_add(residual, x, 0.3)
    out.sum().backward()
    kept = x.grad != 0
    assert 0.5 < kept.float().mean() < 0.9
    assert x.grad[kept].eq(torch.tensor(1 / 0.7, dtype=dtype)).all() and residual.grad.eq(1).all()
    torch.testing.assert_close(out.float(), residual.float() + x.float() * kept / 0.7, rtol=1e-2, atol=2e-2)


def test_relu_dropout_is_relu_then_dropout():
    x, found = torch.randn(300, 40, requires_grad=True), []
    for compute in (lambda: relu_dropout(x, 0.2), lambda: dropout(x.relu(), 0.2)):
        torch.manual_seed(1)
        found.append(with_gradients([compute()], [x]))
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_no_dropout_is_the_identity():
    x = torch.randn(3, 4)
    assert dropout(x, 0.0) is x and dropout_add(x, x, 0.0).equal(x + x) and relu_dropout(x, 0.0).equal(x.relu())

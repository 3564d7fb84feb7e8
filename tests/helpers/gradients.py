"""Losses and gradients of two ways to compute the same."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from pipeline.models.seq2seq import LossSums


def loss_and_gradients(model: nn.Module, compute: Callable[[], LossSums]) -> tuple[LossSums, dict[str, Tensor]]:
    """Compute a training loss with the same random draws each time.

    Returns:
        The sums, and by name the gradient of each trained weight that has one.
    """
    torch.manual_seed(1)
    sums = compute()
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    found = torch.autograd.grad(sums.loss, [*weights.values()], allow_unused=True)
    return sums, {name: gradient for name, gradient in zip(weights, found, strict=True) if gradient is not None}


def with_gradients(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> list[Tensor]:
    """Return `outputs`, and the gradients of a random combination of them, which is always the same."""
    drawn = torch.Generator().manual_seed(2)
    weights = [torch.randn(output.shape, generator=drawn, dtype=torch.float64).to(output.dtype) for output in outputs]
    return [*outputs, *torch.autograd.grad(outputs, leaves, weights)]


def assert_close_by_name(found: dict[str, Tensor], expected: dict[str, Tensor], rel: float, least: float = 0.0) -> None:
    """Check that tensors differ by at most `rel` times their own largest value, or times `least` if that is larger."""
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        limit = rel * max(float(tensor.abs().max()), least)
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=limit, msg=name)

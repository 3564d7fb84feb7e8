"""The convolution and the recurrence of the CTC recogniser against torch's own modules, gradients among it."""

import pytest
import torch
from torch import Tensor, nn

from pipeline.models.ctc.model import Convolution
from pipeline.models.ctc.settings import KERNELS
from pipeline.models.kernels.gru import gru_sequences


def gradients(outputs: list[Tensor], by: list[Tensor]) -> list[Tensor]:
    """Return the gradients of a random combination of `outputs`, always the same one."""
    drawn = torch.Generator().manual_seed(2)
    weights = [torch.randn(output.shape, generator=drawn, dtype=torch.float64).to(output.dtype) for output in outputs]
    return list(
        torch.autograd.grad(sum((output * weight).sum() for output, weight in zip(outputs, weights, strict=True)), by)
    )


@pytest.mark.parametrize("frames", [23, 24])
@pytest.mark.parametrize("kernel", [*KERNELS, (5, 3, 3, 1)])
def test_convolution_and_its_gradients_equal_torch(kernel, frames):
    torch.manual_seed(1)
    (width, height, hop, jump), channels = kernel, 3
    own = Convolution(channels, 4, (width, height), (hop, jump), (width // 2, height // 2)).double()
    x = torch.randn(2, channels, frames, 40, dtype=torch.float64, requires_grad=True)
    by = [x, *own.parameters()]
    found, expected = own(x), nn.Conv2d.forward(own, x)
    for first, other in zip([found, *gradients([found], by)], [expected, *gradients([expected], by)], strict=True):
        torch.testing.assert_close(first, other, rtol=1e-10, atol=1e-10)


def units(kind: torch.dtype) -> tuple[list[nn.GRU], list[Tensor], list[Tensor]]:
    """Two units, their inputs, and all that has a gradient."""
    torch.manual_seed(1)
    layers = [nn.GRU(size, 6, batch_first=True).to(kind) for size in (4, 5)]
    inputs = [torch.randn(3, 9, size, dtype=kind, requires_grad=True) for size in (4, 5)]
    return layers, inputs, [*inputs, *(weight for layer in layers for weight in layer.parameters())]


def test_grus_side_by_side_and_their_gradients_equal_torch():
    layers, inputs, by = units(torch.float64)
    found, expected = gru_sequences(layers, inputs), [layer(x)[0] for layer, x in zip(layers, inputs, strict=True)]
    for first, other in zip([*found, *gradients(found, by)], [*expected, *gradients(expected, by)], strict=True):
        torch.testing.assert_close(first, other, rtol=1e-10, atol=1e-12)


def test_grus_under_bfloat16_keep_float32_states_and_stay_close():
    layers, inputs, by = units(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = gru_sequences(layers, inputs)
    expected = [layer(x)[0] for layer, x in zip(layers, inputs, strict=True)]
    assert {tensor.dtype for tensor in found} == {torch.float32}
    for first, other in zip([*found, *gradients(found, by)], [*expected, *gradients(expected, by)], strict=True):
        torch.testing.assert_close(first, other, rtol=0, atol=0.02 * other.abs().max().item())

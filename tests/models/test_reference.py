"""Kernels of recurrent loops against the plain modules: values and gradients, in double precision."""

import pytest
import torch
from gradients import with_gradients
from recurrent_models import recurrent_config
from torch import Tensor, nn

from pipeline.models import kernels
from pipeline.models.recurrent.cells import ConditionalGRU
from pipeline.models.recurrent.encoder import MemoryGRU

MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


def random(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(2, *shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def normal(module: nn.Module) -> nn.Module:
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


def compare(module: nn.Module, inputs: list[Tensor]) -> None:
    """Compare outputs and gradients of kernel and plain module."""
    ours = module(*inputs, MASK)
    with kernels.disabled():
        theirs = module(*inputs, MASK)
    assert ours[1].grad_fn.name() != theirs[1].grad_fn.name()
    leaves = [*inputs, *(weight for name, weight in module.named_parameters() if not name.endswith("offset"))]
    torch.testing.assert_close(with_gradients(ours, leaves), with_gradients(theirs, leaves), rtol=0, atol=1e-9)


@pytest.mark.parametrize("reset_bias", [False, True])
def test_the_conditional_gru(reset_bias):
    compare(normal(ConditionalGRU(recurrent_config("rnn", reset_bias=reset_bias))), random((4, 12), (12,), (5, 24)))


@pytest.mark.parametrize("write", ["forget_update", "tanh_content"])
def test_the_external_memory(write):
    compare(normal(MemoryGRU(4, 6, write)), random((5, 4), (5, 4)))

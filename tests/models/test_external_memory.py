"""Statements of the paper about the external memory, and its kernel against its plain module."""

import pytest
import torch
from gradients import with_gradients

from pipeline.models import kernels
from pipeline.models.recurrent.encoder import MemoryGRU

WRITES = ["forget_update", "tanh_content"]
MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


def memory(write: str = "forget_update") -> MemoryGRU:
    layer = MemoryGRU(4, 6, write)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    return layer.double()


def sentences() -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and first cells."""
    return tuple(torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True) for _ in "xm")


@pytest.mark.parametrize("write", WRITES)
def test_padded_cells_never_change(write):
    layer, (x, cells) = memory(write), sentences()
    final = layer(x, cells, MASK)[1]
    assert torch.equal(final[~MASK], cells[~MASK])
    assert not torch.isclose(final[MASK], cells[MASK]).all(-1).any()


def test_memory_without_erasing_or_writing_equals_the_embeddings():
    """F_t = U_t = 0: the gates' weights point away from a state that is 1 in every unit."""
    layer, (x, cells) = memory(), sentences()
    with torch.no_grad():
        layer.gru.weight_input.zero_()
        layer.gru.weight_state.zero_()
        layer.gru.bias.copy_(torch.tensor([0.0] * 4 + [-800.0] * 4 + [800.0] * 4))
        layer.write_gates.fill_(-800.0)
    states, final = layer(x, cells, MASK)
    assert torch.equal(states, torch.ones_like(states))
    assert torch.equal(final, cells)


@pytest.mark.parametrize("write", WRITES)
def test_the_external_memory(write):
    """Values and gradients of both in double precision; a softmax leaves only rounding of the offset before it."""
    layer, inputs = memory(write), sentences()
    ours = layer(*inputs, MASK)
    with kernels.disabled():
        theirs = layer(*inputs, MASK)
    assert ours[1].grad_fn.name() != theirs[1].grad_fn.name()
    leaves = [*inputs, *(weight for name, weight in layer.named_parameters() if not name.endswith("offset"))]
    torch.testing.assert_close(with_gradients(ours, leaves), with_gradients(theirs, leaves), rtol=0, atol=1e-9)

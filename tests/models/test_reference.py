"""The loops with gradients written by hand against the plain ones: values and gradients, in double precision."""

import plain_recurrent as reference
import pytest
import torch
from recurrent_models import recurrent_config
from torch import Tensor, nn

from pipeline.models.layers.gru_record import GRURecord, candidate_first
from pipeline.models.recurrent.conditional_gru import ConditionalGRU
from pipeline.models.recurrent.external_memory import MemoryGRU
from pipeline.models.recurrent.gru import GRU

MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


def random(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(2, *shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def normal(module: nn.Module) -> nn.Module:
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


def compare(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...], leaves: list[Tensor]) -> None:
    """Both outputs, and the gradients of a random weighted sum of each."""
    weights = [torch.randn_like(output) for output in ours]
    totals = [sum((one * w).sum() for one, w in zip(side, weights, strict=True)) for side in (ours, theirs)]
    gradients = [torch.autograd.grad(total, leaves) for total in totals]
    for one, other in (*zip(ours, theirs, strict=True), *zip(*gradients, strict=True)):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def trained(module: nn.Module) -> list[Tensor]:
    """Its weights but the one that no softmax feels."""
    return [weight for name, weight in module.named_parameters() if not name.endswith("offset")]


@pytest.mark.parametrize("reset_bias", [False, True])
def test_the_conditional_gru(reset_bias):
    decoder = normal(ConditionalGRU(recurrent_config("rnn", reset_bias=reset_bias)))
    given = random((4, 12), (12,), (5, 24))
    ours, theirs = decoder(*given, MASK), reference.conditional_gru(decoder, *given, MASK)
    compare(ours, theirs, [*given, *trained(decoder)])


@pytest.mark.parametrize("write", ["forget_update", "tanh_content"])
def test_the_external_memory(write):
    layer, given = normal(MemoryGRU(4, 6, write)), random((5, 4), (5, 4))
    ours, theirs = layer(*given, MASK), reference.memory_gru(layer, *given, MASK)
    compare(ours, theirs, [*given, *trained(layer)])


def test_the_record_of_a_step_has_its_state_and_slopes():
    """Slopes times a step's gradient are the gradients by U h, candidate first, and by W x, candidate last."""
    unit = normal(GRU(4, 4))
    x, h = random((4,), (4,))
    record, out = GRURecord.empty(1, 2, 4, h), torch.empty_like(h)
    with torch.no_grad():
        projected, recurrent = unit.project(x), h @ unit.weight_state.T
        record.steps()[0].advance(projected, recurrent, h, out)
        slopes = record.slopes(h.unsqueeze(0))[0]
    expected, by_state = reference.gru(unit, x, h), torch.randn_like(h)
    by_x, by_h = torch.autograd.grad((expected * by_state).sum(), [x, h])
    torch.testing.assert_close(out, expected.detach(), rtol=0, atol=1e-12)
    slots = (by_state.unsqueeze(1) * slopes).flatten(1)
    torch.testing.assert_close(slots[:, 4:] @ unit.weight_input, by_x, rtol=0, atol=1e-10)
    through_u = slots[:, :12] @ candidate_first(unit.weight_state)
    torch.testing.assert_close(by_state * record.z[0] + through_u, by_h, rtol=0, atol=1e-10)

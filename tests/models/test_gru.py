"""The gated unit and the decoder's recurrence: both paths agree, and their gradients."""

import pytest
import torch
from recurrent_models import recurrent_config

from pipeline.models.recurrent.conditional_gru import ConditionalGRU
from pipeline.models.recurrent.gru import GRU


def drawn(module):
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.double()


@pytest.mark.parametrize("reset_bias", [False, True])
def test_the_librarys_kernel_and_our_step_agree(reset_bias):
    gru, x = drawn(GRU(5, 4, reset_bias)), torch.randn(3, 7, 5, dtype=torch.float64)
    states, state = gru(x), torch.zeros(3, 4, dtype=torch.float64)
    for t in range(7):
        state = gru.step(gru.project(x[:, t]), state)
        torch.testing.assert_close(states[:, t], state, rtol=0, atol=1e-12)


def test_a_step_is_the_papers_formula():
    gru, x, h = drawn(GRU(5, 4)), torch.randn(3, 5).double(), torch.randn(3, 4).double()
    w_r, w_z, w = gru.weight_input.chunk(3)
    u_r, u_z, u = gru.weight_state.chunk(3)
    b_r, b_z, b = gru.bias.chunk(3)
    r = torch.sigmoid(x @ w_r.t() + h @ u_r.t() + b_r)
    z = torch.sigmoid(x @ w_z.t() + h @ u_z.t() + b_z)
    candidate = torch.tanh(x @ w.t() + b + r * (h @ u.t()))
    torch.testing.assert_close(gru.step(gru.project(x), h), z * h + (1 - z) * candidate, rtol=0, atol=1e-12)


def test_a_reset_bias_is_multiplied_by_the_reset_gate():
    gru, x, h = drawn(GRU(5, 4, reset_bias=True)), torch.randn(3, 5).double(), torch.randn(3, 4).double()
    plain = GRU(5, 4).double()
    plain.load_state_dict(gru.state_dict())
    w_r, w_z, w = gru.weight_input.chunk(3)
    u_r, u_z, u = gru.weight_state.chunk(3)
    b_r, b_z, b = gru.bias.chunk(3)
    r, z = torch.sigmoid(x @ w_r.t() + h @ u_r.t() + b_r), torch.sigmoid(x @ w_z.t() + h @ u_z.t() + b_z)
    expected = z * h + (1 - z) * torch.tanh(x @ w.t() + r * (h @ u.t() + b))
    torch.testing.assert_close(gru.step(gru.project(x), h), expected, rtol=0, atol=1e-12)
    assert not torch.allclose(expected, plain.step(plain.project(x), h))


def unrolled(decoder, y, state, annotations, mask):
    """The decoder's states and contexts by its own steps and by automatic differentiation."""
    keys, state, steps = decoder.attention.keys(annotations), state.unsqueeze(1), []
    for t in range(y.shape[1]):
        state, context = decoder.step(y[:, t : t + 1], state, keys, annotations, mask)
        steps.append((state, context))
    return tuple(torch.cat(side, dim=1) for side in zip(*steps, strict=True))


@pytest.mark.parametrize("reset_bias", [False, True])
def test_the_decoders_loop_and_its_gradients_are_those_of_its_steps(reset_bias):
    decoder = drawn(ConditionalGRU(recurrent_config("rnn", reset_bias=reset_bias)))
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    given = [torch.randn(2, *shape).double().requires_grad_() for shape in ((4, 12), (12,), (5, 24))]
    leaves = [*given, *(weight for name, weight in decoder.named_parameters() if not name.endswith("offset"))]
    outputs = decoder(*given, mask), unrolled(decoder, *given, mask)
    weights = [torch.randn_like(tensor) for tensor in outputs[0]]
    gradients = []
    for output in outputs:
        total = sum((tensor * weight).sum() for tensor, weight in zip(output, weights, strict=True))
        gradients.append(torch.autograd.grad(total, leaves))
    for one, other in (*zip(*outputs, strict=True), *zip(*gradients, strict=True)):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_padding_has_no_weight_and_the_rest_sums_to_one():
    decoder, mask = drawn(ConditionalGRU(recurrent_config())), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    keys = decoder.attention.keys(torch.randn(2, 5, 24).double())
    weights = decoder.attention.weights(torch.randn(2, 3, 12).double(), keys, mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3).double(), rtol=0, atol=1e-12)
    assert not weights.masked_select(~mask.unsqueeze(1)).any()

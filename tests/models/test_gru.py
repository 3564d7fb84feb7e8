"""The gated unit, additive attention and the decoder: formulas of the paper, kernels and single steps agree."""

import pytest
import torch
from recurrent_models import recurrent_config
from torch import Tensor

from pipeline.models import kernels
from pipeline.models.recurrent.cells import GRU, AdditiveAttention, ConditionalGRU


def formula(unit: GRU, x: Tensor, h: Tensor) -> Tensor:
    """Return the next state by eq. 7 and 8 of Multi-channel Encoder, of input x (B, D) and state h (B, H)."""
    (w_r, w_z, w), (u_r, u_z, u) = unit.weight_input.chunk(3), unit.weight_state.chunk(3)
    b_r, b_z, b = unit.bias.chunk(3)
    r = torch.sigmoid(x @ w_r.T + h @ u_r.T + b_r)
    z = torch.sigmoid(x @ w_z.T + h @ u_z.T + b_z)
    recurrent = r * (h @ u.T + b) if unit.reset_bias else r * (h @ u.T) + b
    return z * h + (1 - z) * torch.tanh(x @ w.T + recurrent)


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


@pytest.mark.parametrize("reset_bias", [False, True])
def test_a_step_is_the_papers_formula(reset_bias):
    unit, x, h = drawn(GRU(5, 4, reset_bias)), torch.randn(3, 5).double(), torch.randn(3, 4).double()
    torch.testing.assert_close(unit.step(unit.project(x), h), formula(unit, x, h), rtol=0, atol=1e-12)


@pytest.mark.parametrize("reset_bias", [False, True])
def test_gru_loop_equals_library_kernel(reset_bias):
    unit, x = drawn(GRU(5, 4, reset_bias)), torch.randn(3, 7, 5, dtype=torch.float64)
    with kernels.disabled():
        plain = unit(x)
    torch.testing.assert_close(unit(x), plain, rtol=0, atol=1e-12)


def test_attention_weights_are_the_papers_formula():
    unit, mask = drawn(AdditiveAttention(6, 5, 8)), torch.tensor([[True] * 4, [True] * 2 + [False] * 2])
    state, annotations = torch.randn(2, 3, 6).double(), torch.randn(2, 4, 5).double()
    hidden = torch.tanh((state @ unit.query.T).unsqueeze(2) + (annotations @ unit.key.T).unsqueeze(1) + unit.bias)
    scores = hidden @ unit.score + unit.offset
    expected = scores.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(2)
    found = unit.weights(state, unit.keys(annotations), mask)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_a_reset_bias_makes_another_unit():
    unit, x, h = drawn(GRU(5, 4, reset_bias=True)), torch.randn(3, 5).double(), torch.randn(3, 4).double()
    plain = GRU(5, 4).double()
    plain.load_state_dict(unit.state_dict())
    assert not torch.allclose(unit.step(unit.project(x), h), plain.step(plain.project(x), h))


def test_the_decoders_single_steps_are_those_of_its_loop():
    decoder, mask = drawn(ConditionalGRU(recurrent_config())), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    y, state, annotations = (torch.randn(2, *shape).double() for shape in ((4, 12), (12,), (5, 24)))
    states, contexts = decoder(y, state, annotations, mask)
    keys, state = decoder.attention.keys(annotations), state.unsqueeze(1)
    for t in range(4):
        state, context = decoder.step(y[:, t : t + 1], state, keys, annotations, mask)
        torch.testing.assert_close(states[:, t : t + 1], state, rtol=0, atol=1e-12)
        torch.testing.assert_close(contexts[:, t : t + 1], context, rtol=0, atol=1e-12)


def test_padding_has_no_weight_and_the_rest_sums_to_one():
    decoder, mask = drawn(ConditionalGRU(recurrent_config())), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    keys = decoder.attention.keys(torch.randn(2, 5, 24).double())
    weights = decoder.attention.weights(torch.randn(2, 3, 12).double(), keys, mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3).double(), rtol=0, atol=1e-12)
    assert not weights.masked_select(~mask.unsqueeze(1)).any()

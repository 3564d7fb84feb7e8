"""Recurrent encoders, GRU loops and the recurrent systems of the papers."""

import pytest
import torch
from recurrent_models import recurrent_config
from torch import Tensor

from pipeline.models.recurrent.encoder import Blend, RecurrentEncoder


def drawn(module, std: float = 1.0):
    """Return the module with random weights, in double precision."""
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=std)
    return module.double()


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


EXACT = {"rtol": 0, "atol": 1e-12}
PADDED = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


@pytest.mark.parametrize("form", ["gate", "gru"])
@pytest.mark.parametrize("bias", [1e4, -1e4])
def test_a_shut_gate_leaves_one_projected_channel(form, bias):
    """The channel that a GRU adds is the new state, its first channel the old one."""
    blend, first, second = drawn(Blend(6, 5, 6, form)), randn(2, 3, 6), randn(2, 3, 5)
    with torch.no_grad():
        blend.bias.fill_(bias)
    a, b = first @ blend.of_first[6:].T, second @ blend.of_second[6:].T
    by_gate, by_gru = (a, torch.tanh(a + b)) if bias > 0 else (b, first)
    torch.testing.assert_close(blend(first, second)[0], by_gate if form == "gate" else by_gru, **EXACT)


def test_a_blend_weighs_channels_by_the_gate_it_returns():
    blend, first, second = drawn(Blend(6, 5, 6, "gate")), randn(2, 3, 6), randn(2, 3, 5)
    found, z = blend(first, second)
    expected = z * (first @ blend.of_first[6:].T) + (1 - z) * (second @ blend.of_second[6:].T)
    torch.testing.assert_close(found, expected, **EXACT)


def test_recurrent_encoder_names_gates_by_the_added_channel():
    encoder = drawn(RecurrentEncoder(recurrent_config("ntm-rnn-emb")))
    x = randn(2, 5, 12)
    channels = encoder.channels(x, PADDED)
    memory_and_states, first = encoder.blends[0](channels["ntm"], channels["rnn"])
    second = encoder.blends[1](memory_and_states, x)[1]
    gates = encoder.blended(channels)[1]
    assert list(gates) == ["rnn", "emb"]
    torch.testing.assert_close(gates, {"rnn": first, "emb": second})


@pytest.mark.parametrize("form", ["gate", "gru"])
def test_gradients_reach_both_channels(form):
    channels = [randn(2, 3, width).requires_grad_() for width in (6, 5)]
    drawn(Blend(6, 5, 6, form))(*channels)[0].sum().backward()
    assert all((channel.grad != 0).all() for channel in channels)

"""Channels and their blending."""

import pytest
import torch
from recurrent_models import CHANNELS, recurrent_config

from pipeline.models.layers.positions import gather_positions, reversal_indices
from pipeline.models.recurrent.encoder import Blend, RecurrentEncoder


def drawn(module):
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module


@pytest.mark.parametrize(("bias", "first_alone"), [(1e4, True), (-1e4, False)])
def test_a_shut_gate_leaves_one_projected_channel(bias, first_alone):
    blend, first, second = drawn(Blend(6, 5, 6, "gate")), torch.randn(2, 3, 6), torch.randn(2, 3, 5)
    with torch.no_grad():
        blend.bias.fill_(bias)
    p, q = blend.of_first[6:], blend.of_second[6:]
    expected = first @ p.t() if first_alone else second @ q.t()
    torch.testing.assert_close(blend(first, second)[0], expected, rtol=0, atol=1e-5)


def test_gru_blend_keeps_the_first_channel_if_its_gate_is_closed():
    blend, first, second = drawn(Blend(6, 5, 6, "gru")), torch.randn(2, 3, 6), torch.randn(2, 3, 5)
    with torch.no_grad():
        blend.bias.fill_(-1e4)
    torch.testing.assert_close(blend(first, second)[0], first, rtol=0, atol=1e-5)
    with torch.no_grad():
        blend.bias.fill_(1e4)
    expected = torch.tanh(first @ blend.of_first[6:].t() + second @ blend.of_second[6:].t())
    torch.testing.assert_close(blend(first, second)[0], expected, rtol=0, atol=1e-5)


def test_the_gate_alone_is_the_one_that_blends():
    blend, first, second = drawn(Blend(6, 5, 6, "gate")), torch.randn(2, 3, 6), torch.randn(2, 3, 5)
    z, a, b = blend(first, second)[1], first @ blend.of_first[6:].t(), second @ blend.of_second[6:].t()
    torch.testing.assert_close(z * a + (1 - z) * b, blend(first, second)[0], rtol=0, atol=1e-5)


def test_recurrent_encoder_names_gates_by_the_added_channel():
    encoder = drawn(RecurrentEncoder(recurrent_config("ntm-rnn-emb")))
    x, mask = torch.randn(2, 4, 12), torch.ones(2, 4, dtype=torch.bool)
    channels, gates = encoder.channels(x, mask), encoder.blended(encoder.channels(x, mask))[1]
    memory_and_states, _ = encoder.blends[0](channels["ntm"], channels["rnn"])
    assert list(gates) == ["rnn", "emb"]
    torch.testing.assert_close(gates["rnn"], encoder.blends[0](channels["ntm"], channels["rnn"])[1])
    torch.testing.assert_close(gates["emb"], encoder.blends[1](memory_and_states, x)[1])


@pytest.mark.parametrize("form", ["gate", "gru"])
def test_gradients_reach_both_channels(form):
    blend = drawn(Blend(6, 5, 6, form))
    channels = [torch.randn(2, 3, width, requires_grad=True) for width in (6, 5)]
    blend(*channels)[0].sum().backward()
    assert all((channel.grad != 0).all() for channel in channels)


@pytest.mark.parametrize("channels", CHANNELS)
def test_annotation_depends_only_on_the_channels_in_its_name(channels, monkeypatch):
    encoder = drawn(RecurrentEncoder(recurrent_config(channels)))
    x, mask = torch.randn(2, 4, 12), torch.ones(2, 4, dtype=torch.bool)
    names = ["rnn", "emb", "ntm"] if encoder.config.has_memory else ["rnn", "emb"]
    found = {name: tensor.detach().requires_grad_() for name, tensor in encoder.channels(x, mask).items()}
    assert set(found) == set(names)
    monkeypatch.setattr(encoder, "channels", lambda x, mask: found)
    annotations, states = encoder(x, mask)
    assert states is found["rnn"] and annotations.shape == (2, 4, encoder.config.d_annotation)
    annotations.sum().backward()
    reached = {name for name, channel in found.items() if channel.grad is not None and channel.grad.any()}
    assert reached == set(channels.split("-"))


def test_backward_layer_reads_the_reversed_forward_states():
    encoder = drawn(RecurrentEncoder(recurrent_config()))
    x, mask = torch.randn(2, 4, 12), torch.tensor([[True] * 4, [True] * 3 + [False]])
    h = encoder.channels(x, mask)["rnn"]
    for row, length in enumerate((4, 3)):
        ahead = encoder.forward_layer(x[row : row + 1, :length])
        back = encoder.backward_layer(ahead.flip(1)).flip(1)
        torch.testing.assert_close(h[row, :length], torch.cat((ahead, back), 2)[0], rtol=0, atol=1e-6)


def test_reversing_twice_is_the_identity_and_keeps_padding_last():
    mask = torch.tensor([[True] * 4, [True] * 2 + [False] * 2])
    x = torch.arange(8.0).view(2, 4, 1)
    places = reversal_indices(mask)
    assert gather_positions(x, places).squeeze(2).tolist() == [[3, 2, 1, 0], [5, 4, 6, 7]]
    assert torch.equal(gather_positions(gather_positions(x, places), places), x)


def test_gradients_of_reversed_sequences_are_those_of_gather():
    lengths, x = torch.tensor([5, 0, 3]), torch.randn(3, 5, 2, requires_grad=True)
    places = reversal_indices(torch.arange(5) < lengths.unsqueeze(1))
    weights = torch.randn(3, 5, 2)
    (found,) = torch.autograd.grad((gather_positions(x, places) * weights).sum(), x)
    gathered = x.gather(1, places.unsqueeze(2).expand_as(x))
    assert torch.equal(found, *torch.autograd.grad((gathered * weights).sum(), x))

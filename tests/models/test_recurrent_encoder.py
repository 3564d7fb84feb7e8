"""Recurrent encoders, GRU loops and the recurrent systems of the papers."""

import pytest
import torch
from recurrent_models import CHANNELS, STRUCTURES, recurrent_config
from small_models import VOCAB, pairs
from torch import Tensor
from torch.nn import functional as F

from pipeline.models import kernels
from pipeline.models.architectures import build_model
from pipeline.models.layers.positions import gather_positions, reversal_indices
from pipeline.models.recurrent.cells import GRU, AdditiveAttention, ConditionalGRU
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


def formula(unit: GRU, x: Tensor, h: Tensor) -> Tensor:
    """Return the next state by eq. 7 and 8 of Multi-channel Encoder, of input x (B, D) and state h (B, H)."""
    (w_r, w_z, w), (u_r, u_z, u) = unit.weight_input.chunk(3), unit.weight_state.chunk(3)
    b_r, b_z, b = unit.bias.chunk(3)
    r = torch.sigmoid(x @ w_r.T + h @ u_r.T + b_r)
    z = torch.sigmoid(x @ w_z.T + h @ u_z.T + b_z)
    recurrent = r * (h @ u.T + b) if unit.reset_bias else r * (h @ u.T) + b
    return z * h + (1 - z) * torch.tanh(x @ w.T + recurrent)


def gru_drawn(module):
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.double()


@pytest.mark.parametrize("reset_bias", [False, True])
def test_the_librarys_kernel_and_our_step_agree(reset_bias):
    gru, x = gru_drawn(GRU(5, 4, reset_bias)), torch.randn(3, 7, 5, dtype=torch.float64)
    states, state = gru(x), torch.zeros(3, 4, dtype=torch.float64)
    for t in range(7):
        state = gru.step(gru.project(x[:, t]), state)
        torch.testing.assert_close(states[:, t], state, rtol=0, atol=1e-12)


@pytest.mark.parametrize("reset_bias", [False, True])
def test_a_step_is_the_papers_formula(reset_bias):
    unit, x, h = gru_drawn(GRU(5, 4, reset_bias)), torch.randn(3, 5).double(), torch.randn(3, 4).double()
    torch.testing.assert_close(unit.step(unit.project(x), h), formula(unit, x, h), rtol=0, atol=1e-12)


@pytest.mark.parametrize("reset_bias", [False, True])
def test_gru_loop_equals_library_kernel(reset_bias):
    unit, x = gru_drawn(GRU(5, 4, reset_bias)), torch.randn(3, 7, 5, dtype=torch.float64)
    with kernels.disabled():
        plain = unit(x)
    torch.testing.assert_close(unit(x), plain, rtol=0, atol=1e-12)


def test_attention_weights_are_the_papers_formula():
    unit, mask = gru_drawn(AdditiveAttention(6, 5, 8)), torch.tensor([[True] * 4, [True] * 2 + [False] * 2])
    state, annotations = torch.randn(2, 3, 6).double(), torch.randn(2, 4, 5).double()
    hidden = torch.tanh((state @ unit.query.T).unsqueeze(2) + (annotations @ unit.key.T).unsqueeze(1) + unit.bias)
    scores = hidden @ unit.score + unit.offset
    expected = scores.masked_fill(~mask.unsqueeze(1), -torch.inf).softmax(2)
    found = unit.weights(state, unit.keys(annotations), mask)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_the_decoders_single_steps_are_those_of_its_loop():
    decoder, mask = gru_drawn(ConditionalGRU(recurrent_config())), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    y, state, annotations = (torch.randn(2, *shape).double() for shape in ((4, 12), (12,), (5, 24)))
    states, contexts = decoder(y, state, annotations, mask)
    keys, state = decoder.attention.keys(annotations), state.unsqueeze(1)
    for t in range(4):
        state, context = decoder.step(y[:, t : t + 1], state, keys, annotations, mask)
        torch.testing.assert_close(states[:, t : t + 1], state, rtol=0, atol=1e-12)
        torch.testing.assert_close(contexts[:, t : t + 1], context, rtol=0, atol=1e-12)


def test_padding_has_no_weight_and_the_rest_sums_to_one():
    decoder, mask = gru_drawn(ConditionalGRU(recurrent_config())), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    keys = decoder.attention.keys(torch.randn(2, 5, 24).double())
    weights = decoder.attention.weights(torch.randn(2, 3, 12).double(), keys, mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3).double(), rtol=0, atol=1e-12)
    assert not weights.masked_select(~mask.unsqueeze(1)).any()


@pytest.fixture(params=STRUCTURES)
def system(request):
    return STRUCTURES[request.param]


def evaluated(system):
    return build_model(system, (VOCAB, VOCAB)).eval()


@torch.no_grad()
def test_loss_is_the_cross_entropy_of_real_positions(system):
    model, batch = evaluated(system), pairs([9, 4, 6], [3, 8, 5])
    real = batch.tgt_out != 0
    sums = model.loss(batch, 0.0)
    expected = F.cross_entropy(model.logits(model.states(batch))[real], batch.tgt_out[real], reduction="sum")
    assert sums.tokens == 16
    torch.testing.assert_close(sums.loss, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(sums.nll, expected, rtol=1e-5, atol=0)


def test_every_parameter_learns_but_what_a_softmax_does_not_feel(system):
    model = build_model(system, (VOCAB, VOCAB)).train()
    model.loss(pairs([9, 4, 6], [3, 8, 5]), 0.1).loss.backward()
    idle = {name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()}
    assert {name for name in idle if not name.endswith("offset")} == set()


def test_dropout_acts_in_training_alone_and_follows_the_seed(system):
    """First weights are large: with those of dl4mt, two losses may be equal by rounding."""
    recurrent = {"output_dropout": 0.5, "init_scale": 0.5}
    changes = {"dropout": 0.5} if system.architecture == "convolutional" else recurrent
    model, batch = build_model(system.model_copy(update=changes), (VOCAB, VOCAB)), pairs([5, 5], [6, 6])

    def loss(seed: int) -> float:
        torch.manual_seed(seed)
        return float(model.loss(batch, 0.0).nll)

    assert loss(1) == loss(1) != loss(2)
    model.eval()
    assert loss(1) == loss(2)


def test_bfloat16_products_change_the_loss_by_their_rounding(system):
    model, batch = evaluated(system), pairs([9, 4, 6], [3, 8, 5])
    wide = model.loss(batch, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = model.loss(batch, 0.1)
    narrow.loss.backward()
    assert narrow.loss.dtype == torch.float32
    torch.testing.assert_close(narrow.loss, wide.loss, rtol=0.05, atol=0)
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)

"""The convolutional model against its formulas."""

import math

import pytest
import torch
from recurrent_models import convolutional_config
from small_models import VOCAB, pairs
from torch.nn import functional as F

from pipeline.models.architectures import build_model
from pipeline.models.convolutional.model import NormedLinear, _ScaledGradient


def test_rows_have_the_length_they_are_given():
    layer = NormedLinear(7, 5, gain=1.0)
    with torch.no_grad():
        layer.length.copy_(torch.arange(1.0, 6.0))
        layer.direction.mul_(3.0)
    torch.testing.assert_close(layer.weight.norm(dim=1), torch.arange(1.0, 6.0))
    torch.testing.assert_close(F.cosine_similarity(layer.weight, layer.direction), torch.ones(5))


def test_first_weights_have_the_spread_of_section_3_5():
    torch.manual_seed(1)
    widths = {"d_embedding": 80, "d_hidden": 96, "d_readout": 64}
    model = build_model(convolutional_config(**widths, dropout=0.2), (VOCAB, VOCAB))
    convolution, layer = model.layers[0].convolution.map, model.layers[0]
    after_dropout = [(convolution, 4 / (3 * 96)), (model.encoder.widen, 1 / 80), (model.widen, 1 / 80)]
    after_dropout.append((model.output, 1 / 64))
    others = [(model.encoder.narrow, 1 / 96), (model.narrow, 1 / 96), (layer.query, 1 / 96), (layer.mix, 1 / 80)]
    for maps, kept in ((after_dropout, 0.8), (others, 1.0)):
        for found, variance in maps:
            assert float(found.weight.detach().std()) == pytest.approx(math.sqrt(kept * variance), rel=0.04)
    assert not convolution.bias.any()
    torch.testing.assert_close(convolution.weight, convolution.direction)
    assert float(model.src_embedding.symbols.detach().std()) == pytest.approx(0.1, rel=0.1)
    assert float(model.tgt_embedding.positions.table.detach().std()) == pytest.approx(0.1, rel=0.1)


def test_the_encoder_gets_its_gradient_scaled():
    """Each of the three decoder layers sends two gradients (section 3.4); the forward pass does not change."""
    x = torch.randn(3)
    assert torch.equal(_ScaledGradient.apply(x, 0.25), x)
    model, batch = build_model(convolutional_config(decoder_layers=3), (VOCAB, VOCAB)), pairs([6, 6], [5, 5])
    model.encode(batch)["keys"].sum().backward()
    torch.testing.assert_close(model.encoder.narrow.bias.grad, torch.full((10,), 12 / 6))


def test_convolutional_decoder_attends_in_every_layer():
    model, batch = build_model(convolutional_config(), (VOCAB, VOCAB)).eval(), pairs([6, 4], [5, 5])
    source, embedded = model.encode(batch), model.tgt_embedding(batch.tgt_in)
    x = model.widen(embedded)
    for layer in model.layers:
        convolved = layer.convolution(F.pad(x, (0, 0, 2, 0)))
        d = (layer.query(convolved) + embedded) * math.sqrt(0.5)
        scores = torch.einsum("bte,bse->bts", d, source["keys"]).masked_fill(~batch.src_mask.unsqueeze(1), -math.inf)
        context = scores.softmax(2) @ source["values"] * batch.src_mask.sum(1)[:, None, None].sqrt()
        x = ((layer.mix(context) + convolved) * math.sqrt(0.5) + x) * math.sqrt(0.5)
    torch.testing.assert_close(model.states(batch), model.narrow(x), rtol=0, atol=1e-5)


def test_an_even_source_kernel_is_refused():
    with pytest.raises(ValueError, match="must be odd"):
        convolutional_config(encoder_kernel=4)


def test_convolutional_encoder_is_section_3_written_out():
    """Keys are z, values sqrt(0.5) (z + e); residual connections keep variances."""
    model, batch = build_model(convolutional_config(), (VOCAB, VOCAB)).double().eval(), pairs([6, 4], [5, 5])
    encoded, encoder = model.encode(batch), model.encoder
    for row, length in enumerate([6, 4]):
        embedded = model.src_embedding.symbols[batch.src[row, :length]] + model.src_embedding.positions.table[:length]
        x = encoder.widen(embedded)
        for layer in encoder.layers:
            windows = F.pad(x, (0, 0, 2, 2)).unfold(0, 5, 1).transpose(1, 2).flatten(1)
            values, gates = layer.map(windows).chunk(2, dim=1)
            x = (x + values * gates.sigmoid()) * math.sqrt(0.5)
        keys = encoder.narrow(x)
        torch.testing.assert_close(encoded["keys"][row, :length], keys)
        torch.testing.assert_close(encoded["values"][row, :length], (keys + embedded) * math.sqrt(0.5))

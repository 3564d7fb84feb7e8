"""Layers that are compiled for training, and the calls that use them."""

import pytest
import torch
from compiled_layers import CompiledLayers
from small_models import VOCAB, pairs, transformer_config
from torch import nn

from pipeline.models.architectures import build_model


def test_compiled_layers_are_called_while_used_and_not_otherwise(monkeypatch):
    called = []

    def compile_as_is(layer: nn.Module, dynamic: bool) -> None:
        def call(*args):
            called.append(type(layer).__name__)
            return layer._call_impl(*args)

        layer._compiled_call_impl = call

    monkeypatch.setattr(nn.Module, "compile", compile_as_is)
    model, batch = build_model(transformer_config(), (VOCAB, VOCAB)), pairs([5, 3], [4, 6])
    compiled = CompiledLayers(model)
    plain = model.loss(batch, 0.1).loss
    assert not called
    with compiled.used():
        assert torch.equal(model.loss(batch, 0.1).loss, plain)
    assert called == ["EncoderLayer", "EncoderLayer", "DecoderLayer", "DecoderLayer"]
    model.loss(batch, 0.1)
    assert len(called) == 4


@pytest.mark.slow
def test_compiled_loss_and_gradients_equal_those_of_the_layers():
    torch.manual_seed(1)
    model = build_model(transformer_config(), (VOCAB, VOCAB)).train()
    compiled, batches = CompiledLayers(model), [pairs([5, 3, 4], [4, 6, 2]), pairs([7, 9], [8, 3])]
    for layer in compiled.layers:
        layer.compile(dynamic=True, backend="aot_eager")
    compiled.calls = [layer._compiled_call_impl for layer in compiled.layers]
    for layer in compiled.layers:
        layer._compiled_call_impl = None
    weights = [*model.parameters()]
    for batch in batches:
        expected = torch.autograd.grad(model.loss(batch, 0.1).loss, weights)
        with compiled.used():
            found = torch.autograd.grad(model.loss(batch, 0.1).loss, weights)
        for first, other in zip(found, expected, strict=True):
            torch.testing.assert_close(first, other, rtol=1e-4, atol=1e-5)

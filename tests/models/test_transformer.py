"""Both Transformers: embeddings, normalisation, dropout, caches and attention; see also test_translation_models.py."""

import pytest
import torch
from small_models import CONFIGS, VOCAB, pairs, transformer_config

from pipeline.models.architectures import build_model
from pipeline.models.transformer.multi_head_attention import attention_mask


def evaluated(config):
    return build_model(config, (VOCAB, VOCAB)).eval()


@torch.no_grad()
def test_search_cache_has_the_dtype_of_matmuls():
    model, batch = evaluated(transformer_config()), pairs([9, 4], [3, 8])
    for narrow, kind in ((False, torch.float32), (True, torch.bfloat16)):
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            source, cache = model.start(batch)
            _, cache = model.step(batch.tgt_in[:, :1], source, cache)
        assert {tensor.dtype for layer in cache for tensor in layer} == {kind}


@torch.no_grad()
def test_encoder_without_positions_is_permutation_equivariant():
    model, src = evaluated(transformer_config()), torch.randint(4, VOCAB, (2, 10))
    order = torch.randperm(10)
    assert (model.encode(src[:, order], None) - model.encode(src, None)[:, order]).abs().max() > 0.1
    model.src_positions.table = torch.zeros_like(model.src_positions.table)
    assert (model.encode(src[:, order], None) - model.encode(src, None)[:, order]).abs().max() < 1e-5


def test_embeddings_are_tied_and_scaled_to_unit_variance():
    model = build_model(transformer_config(d_model=256), (1000, 1000)).eval()
    assert model.output_weight is model.src_embedding.weight is model.tgt_embedding.weight
    embedded = model.embed(model.src_embedding, torch.arange(1000).unsqueeze(0), torch.zeros(1000, 256))
    assert embedded.std().item() == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("name", ["transformer", "weighted", "weighted, literal"])
def test_every_dropout_acts_in_training_alone(name):
    """One place after the other drops half; evaluated, the model is what it is without."""
    config = CONFIGS[name].model_copy(update={"num_layers": 1})
    model, batch = build_model(config, (VOCAB, VOCAB)), pairs([9, 4, 6], [3, 8, 5])
    places = [module for module in model.modules() if isinstance(getattr(module, "dropout", None), float)]
    for place in places:
        place.dropout = 0.0
    expected = model.eval().loss(batch, 0.0).nll.item()

    def check():
        assert model.eval().loss(batch, 0.0).nll.item() == expected
        losses = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            losses.append(model.train().loss(batch, 0.0).nll.item())
        assert losses[0] == losses[1] != losses[2]

    for place in places:
        place.dropout = 0.5
        check()
        place.dropout = 0.0
    model.config = config.model_copy(update={"dropout": 0.5})  # of the embeddings
    check()


@torch.no_grad()
def test_dropout_spares_residuals_but_not_positions():
    """Section 5.4: on a sub-layer's output before the sum with its input, and on the sum of embedding and position."""
    model, x = build_model(transformer_config(dropout=0.5), (VOCAB, VOCAB)).train(), torch.randn(2, 10, 32)
    for norm in (model.encoder[0].attention_norm, model.decoder[0].feed_forward_norm):
        torch.testing.assert_close(norm(x, torch.zeros_like(x)), torch.nn.functional.layer_norm(x, (32,), eps=1e-6))
    tokens, positions = torch.randint(4, VOCAB, (2, 10)), torch.rand(10, 32)
    kept = model.embed(model.tgt_embedding, tokens, positions) / (model.output_weight[tokens] * 32**0.5 + positions)
    assert set(kept.round(decimals=3).unique().tolist()) == {0, 2}


@torch.no_grad()
def test_encoder_attention_returns_the_weights_a_layer_uses():
    """The batch has another number of words than of rows, so that no axis is taken for another."""
    model, batch = evaluated(transformer_config(d_k=3, d_v=11)), pairs([7, 4, 5], [2, 2, 2])
    for number, layer in enumerate(model.encoder):
        weights = model.encoder_attention(batch, number)
        assert weights.shape == (3, 4, 7, 7)
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4, 7))
        assert not weights.masked_select(~batch.src_mask[:, None, None].expand_as(weights)).any()
        mask = attention_mask(batch.src_mask, model.output_weight)
        read = model.encode(batch.src, mask, number)
        _, _, values = layer.attention.project(read)
        expected = layer.attention(read, mask, False)
        torch.testing.assert_close(layer.attention.mix((weights @ values).transpose(1, 2)), expected)

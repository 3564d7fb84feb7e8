import pytest
import torch
from small_models import transformer_config

from pipeline.models.transformer.multi_head_attention import OutputProjection, SelfAttention, attend


def test_attention_dropout_drops_weights_not_outputs():
    """Dropout of elements of the softmax: with two identities as values, the output is the weights twice."""
    queries, keys = torch.randn(2, 3, 4, 50, 8)
    first, second = attend(queries, keys, torch.eye(50).repeat(1, 2).expand(3, 4, -1, -1), None, False, 0.2).chunk(
        2, -1
    )
    assert first.equal(second)
    growth = first / torch.softmax(queries @ keys.transpose(2, 3) / 8**0.5, -1)
    assert set(growth.round(decimals=3).unique().tolist()) == {0, 1.25}
    assert (growth == 0).float().mean().item() == pytest.approx(0.2, abs=0.02)


def test_weights_are_drawn_with_fan_in_bounds():
    config = transformer_config(d_model=256, num_heads=4)
    weight = SelfAttention(config, OutputProjection(config)).qkv.weight
    assert weight.abs().max() <= (3 / 256) ** 0.5
    assert weight.std().item() == pytest.approx(256**-0.5, rel=0.01)


def test_scores_of_unit_variance_inputs_have_variance_d_k():
    """Values are the identity, so outputs are weights. Their logarithm is the scaled score minus a number per query."""
    d_k = 64
    queries, keys = torch.randn(2, 1, 1, 500, d_k)
    products = (queries @ keys.transpose(2, 3)).var(-1).mean().item()
    scaled = attend(queries, keys, torch.eye(500).view(1, 1, 500, 500), None, False, 0.0).log().var(-1).mean().item()
    assert (products, scaled) == (pytest.approx(d_k, rel=0.1), pytest.approx(1, rel=0.1))

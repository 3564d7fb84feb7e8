import math

import pytest
import torch
from small_models import VOCAB, transformer_config

from pipeline.core.errors import UserError
from pipeline.models.architectures import build_model
from pipeline.models.layers.positions import LearnedPositions, SinusoidPositions, sinusoids
from pipeline.models.transformer.settings import TransformerConfig


def test_sinusoids_follow_the_formula():
    table = sinusoids(0, 50, 16)
    for position, i in ((0, 0), (1, 3), (49, 7), (20, 0)):
        angle = position / 10000 ** (2 * i / 16)
        assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
        assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


@pytest.mark.parametrize("offset", [1, 7])
def test_a_shift_is_a_fixed_linear_map(offset):
    table = sinusoids(0, 300, 32).double()
    here, there = table[:-offset], table[offset:]
    mapped = here @ torch.linalg.lstsq(here, there, driver="gelsd").solution
    assert (mapped - there).square().mean().sqrt() < 1e-5
    assert (mapped - there).square().mean() < 1e-6


def test_sinusoid_table_grows_on_demand():
    encode = SinusoidPositions(8)
    torch.testing.assert_close(encode(700, 702), sinusoids(700, 702, 8), rtol=0, atol=1e-6)


def test_table_grown_in_inference_mode_is_an_ordinary_tensor():
    encode = SinusoidPositions(8)
    with torch.inference_mode():
        encode(0, 300)
    assert len(encode.table) >= 300 and not encode.table.is_inference() and not encode.table.requires_grad


@pytest.mark.parametrize(("kind", "last"), [("learned", 20), ("sinusoid", None)])
def test_only_a_model_of_learned_positions_has_a_last_one(kind, last):
    model = build_model(transformer_config(positions=kind, max_positions=20), (VOCAB, VOCAB))
    assert model.max_positions == last


def test_learned_table_refuses_positions_it_has_not():
    encode = LearnedPositions(10, 8, std=0.1)
    assert encode(0, 10).shape == (10, 8)
    with pytest.raises(UserError, match="max_positions"):
        encode(10, 11)


def test_learned_positions_start_with_the_variance_of_embeddings():
    config = TransformerConfig(
        architecture="transformer", num_layers=1, d_model=64, d_ff=8, num_heads=2, positions="learned"
    )
    model = build_model(config, (9, 9))
    for encode in (model.src_positions, model.tgt_positions):
        assert float(encode(0, 256).std()) == pytest.approx(1, abs=0.05)
        assert float(encode.table.std()) == pytest.approx(1 / 8, abs=0.01)


def test_learned_positions_are_scaled_rows_of_the_table():
    encode, indices = LearnedPositions(10, 8, std=0.1, scale=2.5), torch.tensor([[7, 0], [3, 3]])
    torch.testing.assert_close(encode(2, 5), encode.table[[2, 3, 4]] * 2.5)
    torch.testing.assert_close(encode.at(indices), encode.table[indices] * 2.5)

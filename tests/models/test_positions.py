import math

import pytest
import torch
from small_models import VOCAB, transformer_config

from pipeline.core.errors import UserError
from pipeline.models.architectures import build_model
from pipeline.models.layers.positions import LearnedPositions, SinusoidPositions, sinusoids


def test_sinusoids_follow_the_formula():
    angles = [[position / 10000 ** (2 * i / 16) for i in range(8)] for position in range(50)]
    expected = [[wave(angle) for angle in row for wave in (math.sin, math.cos)] for row in angles]
    torch.testing.assert_close(sinusoids(50, 16), torch.tensor(expected), rtol=0, atol=1e-5)


@pytest.mark.parametrize("offset", [1, 7])
def test_a_shift_is_a_fixed_linear_map(offset):
    table = sinusoids(300, 32).double()
    here, there = table[:-offset], table[offset:]
    mapped = here @ torch.linalg.lstsq(here, there, driver="gelsd").solution
    assert (mapped - there).square().mean().sqrt() < 1e-5


@pytest.mark.parametrize("without_gradients", [False, True])
def test_sinusoid_table_grows_on_demand_to_an_ordinary_tensor(without_gradients):
    encode = SinusoidPositions(8)
    with torch.inference_mode(without_gradients):
        torch.testing.assert_close(encode(700, 702), sinusoids(702, 8)[700:], rtol=0, atol=1e-6)
    assert len(encode.table) >= 702 and not encode.table.is_inference() and not encode.table.requires_grad


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
    model = build_model(transformer_config(d_model=64, num_layers=1, positions="learned", max_positions=256), (9, 9))
    for encode in (model.src_positions, model.tgt_positions):
        assert float(encode(0, 256).std()) == pytest.approx(1, abs=0.05)
        assert float(encode.table.std()) == pytest.approx(1 / 8, abs=0.01)


def test_learned_positions_are_scaled_rows_of_the_table():
    encode, indices = LearnedPositions(10, 8, std=0.1, scale=2.5), torch.tensor([[7, 0], [3, 3]])
    torch.testing.assert_close(encode(2, 5), encode.table[[2, 3, 4]] * 2.5)
    torch.testing.assert_close(encode.at(indices), encode.table[indices] * 2.5)

"""Parameter counts, computed by the formula of the paper's layers and against the printed column."""

import pytest
import torch
from torch import nn

from pipeline.models.architectures import build_model
from pipeline.models.seq2seq import count_parameters_on_meta
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig

BASE = {"num_layers": 6, "d_model": 512, "d_ff": 2048, "num_heads": 8}
BIG = {"d_model": 1024, "d_ff": 4096, "num_heads": 16}

# changes to the base model, millions printed in Table 3, ours with 37000 rows, ours with 40960 rows
TABLE_3 = [
    ({}, 65, 63_045_632, 65_073_152),
    ({"num_heads": 1}, None, 63_045_632, 65_073_152),
    ({"num_heads": 32}, None, 63_045_632, 65_073_152),
    ({"d_k": 16}, 58, 55_967_744, 57_995_264),
    ({"d_k": 32}, 60, 58_327_040, 60_354_560),
    ({"num_layers": 2}, 36, 33_644_544, 35_672_064),
    ({"num_layers": 4}, 50, 48_345_088, 50_372_608),
    ({"num_layers": 8}, 80, 77_746_176, 79_773_696),
    ({"d_model": 256}, 28, 26_816_512, 27_830_272),
    ({"d_model": 1024}, 168, 163_815_424, 167_870_464),
    ({"d_ff": 1024}, 53, 50_450_432, 52_477_952),
    ({"d_ff": 4096}, 90, 88_236_032, 90_263_552),
    (BIG, 213, 214_171_648, 218_226_688),
]

# the same for the Weighted Transformer's Table 2 (37000 rows) and the number of kappa and alpha
WEIGHTED_TABLE_2 = [
    ({"num_layers": 2}, 36, 33_640_512, 64),
    ({"num_layers": 4}, 50, 48_337_024, 128),
    ({}, 65, 63_033_536, 192),
    ({"num_layers": 8}, 80, 77_730_048, 256),
    (BIG, 213, 214_147_456, 384),
]


class Computed(nn.Module):
    """Its initial weights are computed from a range, in a way that models here do not use."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3, 4) + torch.arange(4))


def test_a_model_with_other_initial_arithmetic_is_counted():
    assert count_parameters_on_meta(Computed) == 12


def count(config, vocab: int) -> int:
    return count_parameters_on_meta(lambda: build_model(config, (vocab, vocab)))


def released_extras(config: TransformerConfig) -> int:
    """Return the parameters that only the authors' code has: biases of the projections, 32 target-space embeddings."""
    heads, keys, values = config.num_heads, config.key_width, config.value_width
    biases = 2 * heads * keys + heads * values + config.d_model
    return 3 * config.num_layers * biases + 32 * config.d_model


@pytest.mark.parametrize(("changes", "printed", "narrow", "wide"), TABLE_3)
def test_transformer(changes, printed, narrow, wide):
    config = TransformerConfig(architecture="transformer", **(BASE | changes))
    assert (count(config, 37_000), count(config, 40_960)) == (narrow, wide)
    if changes is BIG:
        assert narrow / 1e6 == pytest.approx(printed, rel=0.01)
    elif printed:
        assert round((wide + released_extras(config)) / 1e6) == printed


@pytest.mark.parametrize(("ffn_mode", "branched"), [("split", "cross"), ("shared", "self")])
@pytest.mark.parametrize(("changes", "printed", "total", "branch_weights"), WEIGHTED_TABLE_2)
def test_weighted_transformer(changes, printed, total, branch_weights, ffn_mode, branched):
    """total: with one residual connection and LayerNorm a block; where both are kept only kappa and alpha come."""
    reading = {"architecture": "weighted_transformer", "ffn_mode": ffn_mode, "branched_attention": branched}
    config = WeightedTransformerConfig(**reading, residuals="block", **(BASE | changes))
    kept = WeightedTransformerConfig(**reading, residuals="sub-layers", **(BASE | changes))
    plain = TransformerConfig(architecture="transformer", **(BASE | changes))
    assert count(config, 37_000) == total
    # kappa and alpha come, one LayerNorm a layer goes.
    assert total == count(plain, 37_000) + branch_weights - 2 * config.d_model * 2 * config.num_layers
    assert count(kept, 37_000) == count(plain, 37_000) + branch_weights
    assert branch_weights == 4 * config.num_layers * config.num_heads
    more_rows = 0 if changes is BIG else (40_960 - 37_000) * config.d_model
    assert (total + more_rows) / 1e6 == pytest.approx(printed, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "more"),
    [({"positions": "learned", "max_positions": 256}, 2 * 256 * 512), ({"tie_embeddings": "none"}, 2 * 37_000 * 512)],
    ids=["a table of positions a stack", "three matrices of embeddings"],
)
def test_positions_and_untied_embeddings_add_two_matrices(changes, more):
    config = TransformerConfig(architecture="transformer", **BASE, **changes)
    assert count(config, 37_000) == 63_045_632 + more

"""Floating-point operations of training, counted from the matrix products (2 a multiply-add).

Embedding look-ups, softmax, normalisation and dropout are left out: below 2 % at the paper's sizes.
"""

from pipeline.config import ModelConfig, WeightedTransformerConfig

BACKWARD = 2
"""The backward pass of a product is two products of its size."""


def training_flops(
    config: ModelConfig, vocab: int, src_tokens: int, tgt_tokens: int, src_len: float, tgt_len: float
) -> float:
    """Operations of forward and backward over src_tokens and tgt_tokens subwords in sequences of mean length src_len
    and tgt_len; `vocab` is the target vocabulary's size."""
    # Heads times width; in a branched attention too, as long as both widths follow from d_model.
    keys, values = config.num_heads * config.key_width, config.num_heads * config.value_width
    self_projections = config.d_model * (2 * keys + values)
    reads = keys + values
    encoder = self_projections + reads * src_len
    # A decoder query sees half of its own sequence on average, but the whole square is computed.
    decoder = self_projections + reads * tgt_len + config.d_model * keys + reads * src_len
    source_keys = config.d_model * (keys + values)
    plain_mix = values * config.d_model
    if isinstance(config, WeightedTransformerConfig):
        encoder += branched(config)
        decoder += branched(config) + plain_mix
    else:
        encoder += plain_mix + 2 * config.d_model * config.d_ff
        decoder += 2 * plain_mix + 2 * config.d_model * config.d_ff
    per_src = config.num_layers * (encoder + source_keys)
    per_tgt = config.num_layers * decoder + config.d_model * vocab
    return 2.0 * (1 + BACKWARD) * (per_src * src_tokens + per_tgt * tgt_tokens)


def branched(config: WeightedTransformerConfig) -> int:
    """Multiply-adds a position of eq. 6 and 7 with W^{O_i} W_1 formed beforehand (weighted_transformer.py)."""
    copies = config.branches if config.ffn_mode == "shared" else 1
    return copies * (config.d_v or config.d_model // config.branches) * config.d_ff + config.d_ff * config.d_model

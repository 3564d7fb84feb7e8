"""Multiply-adds of the Transformer."""

from pipeline.models.batch_shape import BatchShape
from pipeline.models.transformer.settings import AnyTransformerConfig


def forward_products(config: AnyTransformerConfig, shape: BatchShape) -> float:
    mix, feed_forward = output_projection(config), 2 * config.d_model * config.d_ff
    return with_attention(config, shape, encoder=mix + feed_forward, decoder=2 * mix + feed_forward)


def output_projection(config: AnyTransformerConfig) -> int:
    """Of the heads of one attention, at a position."""
    return config.num_heads * config.value_width * config.d_model


def with_attention(config: AnyTransformerConfig, shape: BatchShape, encoder: float, decoder: float) -> float:
    """Of the whole model, given what a position costs in a layer beside the attention of its heads."""
    # Heads times width; in a branched attention too, as long as both widths follow from d_model.
    keys, values = config.num_heads * config.key_width, config.num_heads * config.value_width
    self_projections, reads = config.d_model * (2 * keys + values), keys + values
    encoder += self_projections + reads * shape.src_length
    # A decoder query sees half of its own sequence on average, but the whole square is computed.
    decoder += self_projections + reads * shape.tgt_length + config.d_model * keys + reads * shape.src_length
    per_src = config.num_layers * (encoder + config.d_model * (keys + values))
    per_tgt = config.num_layers * decoder + config.d_model * shape.vocab
    return per_src * shape.src_positions + per_tgt * shape.tgt_positions

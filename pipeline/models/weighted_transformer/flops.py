"""Multiply-adds of the Weighted Transformer."""

from pipeline.models.batch_shape import BatchShape
from pipeline.models.transformer.flops import output_projection, with_attention
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig


def forward_products(config: WeightedTransformerConfig, shape: BatchShape) -> float:
    """One attention of a layer is branched; a decoder layer has a plain one too."""
    branches = branched(config)
    return with_attention(config, shape, encoder=branches, decoder=branches + output_projection(config))


def branched(config: WeightedTransformerConfig) -> int:
    """Of a position, eq. 6 and 7. With a residual connection inside the branches they're separate products; without,
    W^{O_i} W_1 is formed beforehand (model.py)."""
    values = config.d_v or config.d_model // config.branches
    copies, outer = config.branches if config.ffn_mode == "shared" else 1, config.d_ff * config.d_model
    if config.residuals == "sub-layers":
        sums = config.branches * config.d_model + (config.branches * config.d_ff if copies > 1 else 0)
        return config.branches * values * config.d_model + copies * config.d_model * config.d_ff + outer + sums
    return copies * values * config.d_ff + outer

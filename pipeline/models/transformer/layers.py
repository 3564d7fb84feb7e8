"""Layers of the Transformer (Attention Is All You Need, sections 3.1 and 3.3), post-norm.

Dimensions: B sentences, K hypotheses, S source and T target positions, M branches, D d_model.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pipeline.models.kernels import fused_dropout
from pipeline.models.kernels.autocast import Norm
from pipeline.models.kernels.gpu import fused
from pipeline.models.kernels.relu_layers import relu_network
from pipeline.models.layers.regularisation import dropout_add, relu_dropout
from pipeline.models.transformer.multi_head_attention import CrossAttention, SelfAttention, projection
from pipeline.models.transformer.settings import AnyTransformerConfig

LAYER_NORM_EPS = 1e-6
Network = Callable[[Tensor], tuple[Tensor, Tensor]]
"""A feed-forward network with the signature of `FeedForward`."""


class ResidualNorm(nn.Module):
    """LayerNorm(x + Dropout(sublayer(x))) (section 5.4)."""

    def __init__(self, config: AnyTransformerConfig):
        super().__init__()
        self.dropout = config.dropout
        self.norm = Norm(config.d_model, eps=LAYER_NORM_EPS)

    def forward(self, x: Tensor, output: Tensor) -> Tensor:
        """Add the output of a sub-layer to its input and normalise.

        Args:
            x: Input of the sub-layer, shape (B, T, D).
            output: Output of the sub-layer, shape (B, T, D), or (M, B, T, D) for M branches that share `x`.

        Returns:
            Shape of `output`.
        """
        dropout_rate = self.dropout if self.training else 0.0
        cast = self.norm.cast_weights
        if cast and cast[1] is not None and fused_dropout.can_normalise(x, output):
            return fused_dropout.residual_norm(x, output, cast[0], cast[1], self.norm.eps, dropout_rate)
        return self.norm(dropout_add(x, output, dropout_rate))


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (eq. 2)."""

    def __init__(self, config: AnyTransformerConfig):
        super().__init__()
        self.dropout = config.relu_dropout
        self.inner = projection(config.d_model, config.d_ff, scale=config.feed_forward_init)
        self.outer = projection(config.d_ff, config.d_model, scale=config.feed_forward_init)
        self.inner.bias = nn.Parameter(torch.zeros(config.d_ff))
        self.outer.bias = nn.Parameter(torch.zeros(config.d_model))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the residual connection adds, here `x` (B, T, D) itself, and the network's output (B, T, D)."""
        dropout_rate = self.dropout if self.training else 0.0
        inner, outer = (getattr(layer, "cast_weights", None) for layer in (self.inner, self.outer))
        if inner and outer and not dropout_rate and fused(x):
            return relu_network(x, *inner, *outer)
        return x, self.outer(relu_dropout(self.inner(x), dropout_rate))


class Layer(nn.Module):
    """A layer with a feed-forward network, unless its attention contains the network."""

    feed_forward: Network | None
    feed_forward_norm: ResidualNorm | None

    def apply_feed_forward(self, x: Tensor) -> Tensor:
        """Apply the network to `x` (B, T, D), if there is one, with residual connection and normalisation."""
        if self.feed_forward is None or self.feed_forward_norm is None:
            return x
        return self.feed_forward_norm(*self.feed_forward(x))


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network (section 3.1).

    Args:
        config: Dropout and width.
        attention: Self-attention over the source.
        feed_forward: None if the attention contains the network.
    """

    def __init__(self, config: AnyTransformerConfig, attention: SelfAttention, feed_forward: Network | None):
        super().__init__()
        self.attention, self.attention_norm = attention, ResidualNorm(config)
        self.feed_forward = feed_forward
        self.feed_forward_norm = ResidualNorm(config) if feed_forward else None

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map all source positions.

        Args:
            x: Shape (B, S, D).
            mask: From `attention_mask`, shape (B, 1, 1, S); None if nothing is padded.

        Returns:
            Shape (B, S, D).
        """
        return self.apply_feed_forward(self.attention_norm(x, self.attention(x, mask, causal=False)))


class DecoderLayer(Layer):
    """Masked self-attention, attention over the source and feed-forward network (section 3.1).

    Args:
        config: Dropout, width and the order of the sub-layers.
        self_attention: Attention over the target symbols so far.
        cross_attention: Attention over the encoder's output.
        feed_forward: None if an attention contains the network.
    """

    def __init__(
        self,
        config: AnyTransformerConfig,
        self_attention: SelfAttention,
        cross_attention: CrossAttention,
        feed_forward: Network | None,
    ):
        super().__init__()
        self.self_attention, self.self_norm = self_attention, ResidualNorm(config)
        self.cross_attention, self.cross_norm = cross_attention, ResidualNorm(config)
        self.feed_forward = feed_forward
        self.feed_forward_norm = ResidualNorm(config) if feed_forward else None
        self.source_last = config.source_last

    def forward(self, x: Tensor, encoded: Tensor, mask: Tensor | None) -> Tensor:
        """Map all target positions at once.

        Args:
            x: Shape (B, T, D).
            encoded: Output of the encoder, shape (B, S, D).
            mask: Mask of the source, shape (B, 1, 1, S); None if nothing is padded.

        Returns:
            Shape (B, T, D).
        """
        keys_values = self.cross_attention.source(encoded, x.shape[1])
        return self.attend_source(self.self_norm(x, self.self_attention(x, None, causal=True)), keys_values, mask)

    def step(
        self,
        x: Tensor,
        past: tuple[Tensor, Tensor],
        visible: Tensor | None,
        keys_values: tuple[Tensor, Tensor],
        mask: Tensor | None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Map one new position per hypothesis.

        Args:
            x: Shape (B, K, D).
            past: Keys and values of the self-attention so far, see `SelfAttention.step`.
            visible: Mask of the past, see `SelfAttention.step`.
            keys_values: Keys and values of the source, from `CrossAttention.keys_values`.
            mask: Mask of the source, shape (B, 1, 1, S); None if nothing is padded.

        Returns:
            Output (B, K, D), and the past with the new position.
        """
        output, past = self.self_attention.step(x, past, visible)
        return self.attend_source(self.self_norm(x, output), keys_values, mask), past

    def attend_source(self, x: Tensor, keys_values: Tensor | tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """Apply attention over the source and feed-forward network, in the order of the settings.

        Args:
            x: Output of the self-attention, shape (B, T, D); in decoding T counts hypotheses.
            keys_values: Keys and values of the source, from `CrossAttention.keys_values` or `source`.
            mask: Mask of the source, shape (B, 1, 1, S); None if nothing is padded.

        Returns:
            Shape (B, T, D).
        """
        if self.source_last:
            x = self.apply_feed_forward(x)
        x = self.cross_norm(x, self.cross_attention(x, keys_values, mask))
        return x if self.source_last else self.apply_feed_forward(x)

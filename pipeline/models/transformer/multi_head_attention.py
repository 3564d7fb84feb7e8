"""Multi-head attention (Attention Is All You Need, section 3.2), without projection biases.

Dimensions: B sentences, K hypotheses, S source and T target positions, H heads, D d_model, d_k and d_v widths of a
head. A context (B, T, H, d_v) is the output of the heads before the output projection W^O. The Weighted Transformer
replaces W^O, so `OutputProjection` is a module of its own.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models import kernels
from pipeline.models.kernels import operators as kernel, short_attention
from pipeline.models.kernels.autocast import Projection
from pipeline.models.kernels.loops import matmul_dtype
from pipeline.models.transformer.settings import AnyTransformerConfig


def projection(
    width_in: int, width_out: int, branches: int = 1, kind: type[nn.Linear] = Projection, scale: float = 1.0
) -> nn.Linear:
    """Build a linear map without bias, with weights uniform in ±sqrt(3 / fan_in).

    Args:
        width_in: Inputs of all branches together.
        width_out: Outputs.
        branches: Number of matrices side by side, each with `width_in` / `branches` inputs of its own.
        kind: Class of the module.
        scale: Factor on the initial weights.

    Returns:
        A layer that maps (…, width_in) to (…, width_out).
    """
    layer = kind(width_in, width_out, bias=False)
    bound = scale * math.sqrt(3 * branches / width_in)
    nn.init.uniform_(layer.weight, -bound, bound)
    return layer


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool, dropout_rate: float
) -> Tensor:
    """Compute softmax(Q K^T / sqrt(d_k)) V (eq. 1), with dropout on the weights.

    Args:
        queries: Shape (B, H, T, d_k).
        keys: Shape (B, H, S, d_k).
        values: Shape (B, H, S, d_v).
        mask: From `attention_mask`, broadcastable to (B, H, T, S); None if nothing is padded.
        causal: Let query t attend to keys 0 … t only. No mask is needed then, because padding is at the end.
        dropout_rate: Probability of dropping a weight.

    Returns:
        Shape (B, H, T, d_v).
    """
    if kernels.enabled_on_cpu(queries):
        return kernel.attend(queries, keys, values, mask, causal, dropout_rate)
    return F.scaled_dot_product_attention(queries, keys, values, mask, dropout_p=dropout_rate, is_causal=causal)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Split the last dimension of `x` (B, T, H * d) into H `heads`, shape (B, H, T, d)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attention_mask(src_mask: Tensor, like: Tensor, padded: bool | None = None) -> Tensor | None:
    """Turn a source mask into the mask of `attend`.

    On a GPU the mask is a float bias that fused attention adds to the scores. Its rows are aligned as the kernels
    require. Asking the GPU whether anything is padded would make the host wait, so `padded` is taken from the caller.

    Args:
        src_mask: Shape (B, S), True at source symbols.
        like: Gives the dtype of matrix multiplications.
        padded: True if anything is padded; None if that is unknown.

    Returns:
        Shape (B, 1, 1, S), or None if nothing is padded.
    """
    if not src_mask.is_cuda:
        padded = not bool(src_mask.all()) if padded is None else padded
        return src_mask[:, None, None, :] if padded else None
    if padded is False:
        return None
    rows, width = src_mask.shape
    bias = torch.zeros(rows, 1, 1, width + -width % 8, dtype=matmul_dtype(like), device=src_mask.device)[..., :width]
    return bias.masked_fill_(~src_mask[:, None, None, :], -torch.inf)


class OutputProjection(nn.Module):
    """The output projection W^O: MultiHead = Concat(head_1 … head_H) W^O."""

    def __init__(self, config: AnyTransformerConfig):
        super().__init__()
        self.output = projection(config.num_heads * config.value_width, config.d_model)

    def forward(self, context: Tensor) -> Tensor:
        """Project the heads of a `context` (…, H, d_v), shape (…, D)."""
        return self.output(context.flatten(-2))


class SelfAttention(nn.Module):
    """Attention over the layer's own sequence; Q, K and V are one matrix multiplication.

    Args:
        config: Heads, widths and dropout.
        mix: Maps contexts (B, T, H, d_v) to outputs; `OutputProjection` or a replacement.
    """

    def __init__(self, config: AnyTransformerConfig, mix: nn.Module):
        super().__init__()
        self.heads, self.d_k, self.d_v = config.num_heads, config.key_width, config.value_width
        self.widths = short_attention.Heads(self.heads, self.d_k, self.d_v)
        self.dropout = config.attention_dropout
        self.qkv = projection(config.d_model, self.heads * (2 * self.d_k + self.d_v), scale=config.attention_init)
        self.mix = mix

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute queries and keys (B, H, T, d_k) and values (B, H, T, d_v) of `x` (B, T, D)."""
        return self.split(self.qkv(x))

    def split(self, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Split the joint projection (B, T, H (2 d_k + d_v)) into queries, keys and values, as `project`."""
        queries, keys, values = projected.split([self.heads * width for width in (self.d_k, self.d_k, self.d_v)], -1)
        return split_heads(queries, self.heads), split_heads(keys, self.heads), split_heads(values, self.heads)

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Attend from every position to every position.

        Args:
            x: Shape (B, T, D).
            mask: From `attention_mask`, shape (B, 1, 1, T); None if nothing is padded or `causal` is True.
            causal: Let a position attend to earlier ones and itself only.

        Returns:
            Shape (B, T, D), or what `mix` returns.
        """
        dropout_rate = self.dropout if self.training else 0.0
        projected = self.qkv(x)
        if short_attention.suits(projected, x.shape[1], self.widths):
            context = short_attention.attend(None, projected, mask, self.widths, causal, dropout_rate)
            return self.mix(context.unflatten(-1, (self.heads, -1)))
        queries, keys, values = self.split(projected)
        return self.mix(attend(queries, keys, values, mask, causal, dropout_rate).transpose(1, 2))

    def step(
        self, x: Tensor, past: tuple[Tensor, Tensor], visible: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Attend from one new position per hypothesis.

        Args:
            x: Shape (B, K, D).
            past: Keys (B, K, H, t, d_k) and values (B, K, H, t, d_v) of the t positions so far.
            visible: None if the past grows. Else the new position replaces the first place of the past, and `visible`
                is the mask of the places in use, from `attention_mask`, shape (1, 1, 1, t).

        Returns:
            Output (B, K, D), and the past with the new position.
        """
        batch, hypotheses, _ = x.shape
        queries, keys, values = self.project(x.reshape(batch * hypotheses, 1, -1))
        if visible is not None:
            past = past[0][..., 1:, :], past[1][..., 1:, :]
        keys = torch.cat((past[0], keys.unflatten(0, (batch, hypotheses))), dim=3)
        values = torch.cat((past[1], values.unflatten(0, (batch, hypotheses))), dim=3)
        context = attend(queries, keys.flatten(0, 1), values.flatten(0, 1), visible, False, 0.0)
        return self.mix(context.reshape(batch, hypotheses, self.heads, self.d_v)), (keys, values)

    def empty_past(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Allocate empty keys and values (B, 1, H, 0, width) for `x` (B, …), in the dtype of matmuls."""
        start = x.new_empty(x.shape[0], 1, self.heads, 0, dtype=matmul_dtype(x))
        return start.new_empty(*start.shape, self.d_k), start.new_empty(*start.shape, self.d_v)


class CrossAttention(nn.Module):
    """Attention over the encoder's output; K and V are one matrix multiplication.

    Args:
        config: Heads, widths and dropout.
        mix: Maps contexts (B, T, H, d_v) to outputs; `OutputProjection` or a replacement.
    """

    def __init__(self, config: AnyTransformerConfig, mix: nn.Module):
        super().__init__()
        self.heads, self.d_k, self.d_v = config.num_heads, config.key_width, config.value_width
        self.widths = short_attention.Heads(self.heads, self.d_k, self.d_v)
        self.dropout = config.attention_dropout
        self.query = projection(config.d_model, self.heads * self.d_k, scale=config.attention_init)
        self.kv = projection(config.d_model, self.heads * (self.d_k + self.d_v), scale=config.attention_init)
        self.mix = mix

    def keys_values(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Compute keys (B, H, S, d_k) and values (B, H, S, d_v) of the encoder's output `encoded` (B, S, D)."""
        return self.split(self.kv(encoded))

    def source(self, encoded: Tensor, queries: int) -> Tensor | tuple[Tensor, Tensor]:
        """Compute keys and values of the source in the form that attention is fastest with.

        Args:
            encoded: Output of the encoder, shape (B, S, D).
            queries: Target positions that will attend, T.

        Returns:
            The joint projection, shape (B, S, H (d_k + d_v)), or the result of `keys_values`.
        """
        projected = self.kv(encoded)
        if short_attention.suits(projected, max(queries, encoded.shape[1]), self.widths):
            return projected
        return self.split(projected)

    def split(self, projected: Tensor) -> tuple[Tensor, Tensor]:
        """Split the joint projection into keys (B, H, S, d_k) and values (B, H, S, d_v)."""
        keys, values = projected.split([self.heads * self.d_k, self.heads * self.d_v], dim=-1)
        return split_heads(keys, self.heads), split_heads(values, self.heads)

    def forward(self, x: Tensor, keys_values: Tensor | tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """Attend from every target position to the source.

        Args:
            x: Shape (B, T, D); in decoding T counts hypotheses.
            keys_values: From `keys_values` or `source`.
            mask: Mask of the source, shape (B, 1, 1, S); None if nothing is padded.

        Returns:
            Shape (B, T, D).
        """
        queries, dropout_rate = self.query(x), self.dropout if self.training else 0.0
        if isinstance(keys_values, Tensor):
            context = short_attention.attend(queries, keys_values, mask, self.widths, False, dropout_rate)
            return self.mix(context.unflatten(-1, (self.heads, -1)))
        queries = split_heads(queries, self.heads)
        return self.mix(attend(queries, *keys_values, mask, False, dropout_rate).transpose(1, 2))

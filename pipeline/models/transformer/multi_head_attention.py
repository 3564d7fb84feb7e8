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
from pipeline.models.kernels import attention as kernel
from pipeline.models.kernels.autocast import Projection
from pipeline.models.kernels.loops import matmul_dtype
from pipeline.models.transformer.settings import AnyTransformerConfig


def projection(
    width_in: int, width_out: int, branches: int = 1, kind: type[nn.Linear] = Projection, scale: float = 1.0
) -> nn.Linear:
    """Build a linear map without bias, uniform in ±sqrt(3 / fan_in), as the authors' code.

    Args:
        width_in: Inputs.
        width_out: Outputs.
        branches: Number of matrices side by side, each with `width_in` / `branches` inputs of its own.
        kind: Class of the module.
        scale: Factor of the initial weights.
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
        causal: Let query t attend to keys 0 … t only. No mask is needed then, because padding lies at the end.
        dropout_rate: Probability of dropping a weight.

    Returns:
        Shape (B, H, T, d_v).
    """
    if kernels.enabled_on_cpu(queries):
        return kernel.attend(queries, keys, values, mask, causal, dropout_rate)
    return F.scaled_dot_product_attention(queries, keys, values, mask, dropout_p=dropout_rate, is_causal=causal)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Reshape (B, T, H * d) to (B, H, T, d)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attention_mask(src_mask: Tensor, like: Tensor, padded: bool | None = None) -> Tensor | None:
    """Turn a source mask into the mask of `attend`.

    On a GPU, which is not asked whether anything is padded, the result is what fused attention adds to the scores; the
    stride of its rows is aligned as the kernels require.

    Args:
        src_mask: Shape (B, S), True at source symbols.
        like: Gives the dtype of matrix multiplications.
        padded: Tells whether anything is padded, if known.

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
    """MultiHead = Concat(head_1 … head_H) W^O."""

    def __init__(self, config: AnyTransformerConfig):
        super().__init__()
        self.output = projection(config.num_heads * config.value_width, config.d_model)

    def forward(self, context: Tensor) -> Tensor:
        """Mix the heads of a context: (…, H, d_v) to (…, D)."""
        return self.output(context.flatten(-2))


class SelfAttention(nn.Module):
    """Attention over the own sequence; Q, K and V are one matrix multiplication."""

    def __init__(self, config: AnyTransformerConfig, mix: nn.Module):
        super().__init__()
        self.heads, self.d_k, self.d_v = config.num_heads, config.key_width, config.value_width
        self.dropout = config.attention_dropout
        self.qkv = projection(config.d_model, self.heads * (2 * self.d_k + self.d_v), scale=config.attention_init)
        self.mix = mix

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries and keys (B, H, T, d_k) and values (B, H, T, d_v) of x (B, T, D)."""
        widths = [self.heads * self.d_k, self.heads * self.d_k, self.heads * self.d_v]
        queries, keys, values = self.qkv(x).split(widths, dim=-1)
        return split_heads(queries, self.heads), split_heads(keys, self.heads), split_heads(values, self.heads)

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Attend from x (B, T, D) with a mask (B, 1, 1, T) or None; returns (B, T, D)."""
        queries, keys, values = self.project(x)
        dropout_rate = self.dropout if self.training else 0.0
        return self.mix(attend(queries, keys, values, mask, causal, dropout_rate).transpose(1, 2))

    def step(self, x: Tensor, past: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Attend from one new position per hypothesis.

        Args:
            x: Shape (B, K, D).
            past: Keys (B, K, H, T, d_k) and values (B, K, H, T, d_v).

        Returns:
            Output (B, K, D), and the past with the new position.
        """
        batch, hypotheses, _ = x.shape
        queries, keys, values = self.project(x.reshape(batch * hypotheses, 1, -1))
        keys = torch.cat((past[0], keys.unflatten(0, (batch, hypotheses))), dim=3)
        values = torch.cat((past[1], values.unflatten(0, (batch, hypotheses))), dim=3)
        context = attend(queries, keys.flatten(0, 1), values.flatten(0, 1), None, False, 0.0)
        return self.mix(context.reshape(batch, hypotheses, self.heads, self.d_v)), (keys, values)

    def empty_past(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the past (B, 1, H, 0, …) before the first position; x gives B and device."""
        start = x.new_empty(x.shape[0], 1, self.heads, 0, dtype=matmul_dtype(x))
        return start.new_empty(*start.shape, self.d_k), start.new_empty(*start.shape, self.d_v)


class CrossAttention(nn.Module):
    """Attention over the encoder's output; K and V are one matrix multiplication."""

    def __init__(self, config: AnyTransformerConfig, mix: nn.Module):
        super().__init__()
        self.heads, self.d_k, self.d_v = config.num_heads, config.key_width, config.value_width
        self.dropout = config.attention_dropout
        self.query = projection(config.d_model, self.heads * self.d_k, scale=config.attention_init)
        self.kv = projection(config.d_model, self.heads * (self.d_k + self.d_v), scale=config.attention_init)
        self.mix = mix

    def keys_values(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys (B, H, S, d_k) and values (B, H, S, d_v) of encoded (B, S, D)."""
        keys, values = self.kv(encoded).split([self.heads * self.d_k, self.heads * self.d_v], dim=-1)
        return split_heads(keys, self.heads), split_heads(values, self.heads)

    def forward(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """Attend to the source; in decoding T counts hypotheses.

        Args:
            x: Shape (B, T, D).
            keys_values: From `keys_values`.
            mask: Shape (B, 1, 1, S), or None.

        Returns:
            Shape (B, T, D).
        """
        queries = split_heads(self.query(x), self.heads)
        dropout_rate = self.dropout if self.training else 0.0
        return self.mix(attend(queries, *keys_values, mask, False, dropout_rate).transpose(1, 2))

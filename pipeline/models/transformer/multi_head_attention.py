"""Multi-head attention (Attention Is All You Need, section 3.2), without projection biases.

Dimensions: B sentences, K hypotheses, S source and T target positions, H heads, D d_model.
A "context" (B, T, H, d_v) is what the heads have read, before the output projection W^O mixes them: the Weighted
Transformer mixes them differently, so mixing is a module of its own (`Mix`).
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.layers.dropout import dropout
from pipeline.models.layers.gru_record import matrix_type
from pipeline.models.layers.narrowing import Projection
from pipeline.models.transformer.settings import AnyTransformerConfig


def projection(
    width_in: int, width_out: int, branches: int = 1, kind: type[nn.Linear] = Projection, scale: float = 1.0
) -> nn.Linear:
    """A linear map without bias, initialised uniformly in ±sqrt(3 / fan_in) as the authors' released code does.

    branches: how many matrices stand side by side in it, each with `width_in` / `branches` inputs of its own.
    scale: of its first weights.
    """
    layer = kind(width_in, width_out, bias=False)
    bound = scale * math.sqrt(3 * branches / width_in)
    nn.init.uniform_(layer.weight, -bound, bound)
    return layer


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool, drop: float) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)) V (eq. 1), dropout on the weights.

    queries (B, H, T, d_k), keys (B, H, S, d_k), values (B, H, S, d_v), mask broadcastable to (B, H, T, S), True where
    a query may look, or on a GPU what is added to the scores -> (B, H, T, d_v). `causal` lets query t look at keys
    0 … t; with it no mask is needed, because padding lies at the end.
    """
    if queries.device.type != "cpu":
        return F.scaled_dot_product_attention(queries, keys, values, mask, dropout_p=drop, is_causal=causal)
    batch, heads = queries.shape[:2]
    if causal:
        mask = causal_mask(keys.shape[2], keys.device)
    # Copied before they are transposed: the product reads a transposed matrix well, a strided one badly.
    queries, keys, values = (x.reshape(batch * heads, *x.shape[2:]) for x in (queries, keys, values))
    bias, scale = additive(mask, batch, heads, queries.dtype), queries.shape[-1] ** -0.5
    scores = torch.baddbmm(bias, queries, keys.transpose(1, 2), beta=int(mask is not None), alpha=scale)
    # In float32, which is also the faster type for short rows.
    weights = F.softmax(scores.float(), dim=-1).to(values.dtype)
    return torch.bmm(dropout(weights, drop), values).unflatten(0, (batch, heads))


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, T, H * d) -> (B, H, T, d)"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def causal_mask(length: int, device: torch.device) -> Tensor:
    """(1, 1, T, T), True where position t may look at position s <= t."""
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril()


def additive(mask: Tensor | None, batch: int, heads: int, dtype: torch.dtype) -> Tensor:
    """0 where a query may look and -inf elsewhere, broadcastable to (B * H, T, S)."""
    if mask is None:
        return torch.zeros(1, 1, 1, dtype=dtype)
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
    return bias[0] if len(mask) == 1 else bias.expand(batch, heads, -1, -1).flatten(0, 1)


def attention_mask(src_mask: Tensor, like: Tensor, padded: bool | None = None) -> Tensor | None:
    """(B, S), True = a subword -> (B, 1, 1, S) for the heads, or None when nothing is padded.

    On a GPU, which is not asked whether anything is, it is what fused attention adds to the scores, in the type of
    products of `like`; its rows are as far apart as the kernels want them.
    """
    if not src_mask.is_cuda:
        padded = not bool(src_mask.all()) if padded is None else padded
        return src_mask[:, None, None, :] if padded else None
    if padded is False:
        return None
    rows, width = src_mask.shape
    bias = torch.zeros(rows, 1, 1, width + -width % 8, dtype=matrix_type(like), device=src_mask.device)[..., :width]
    return bias.masked_fill_(~src_mask[:, None, None, :], -torch.inf)


class Mix(nn.Module):
    """MultiHead = Concat(head_1 … head_H) W^O."""

    def __init__(self, config: AnyTransformerConfig):
        super().__init__()
        self.output = projection(config.num_heads * config.value_width, config.d_model)

    def forward(self, context: Tensor) -> Tensor:
        """context (…, H, d_v) -> (…, D)"""
        return self.output(context.flatten(-2))


class SelfAttention(nn.Module):
    """Every position looks at the positions of its own sequence; Q, K, V are one product."""

    def __init__(self, config: AnyTransformerConfig, mix: nn.Module):
        super().__init__()
        self.heads, self.d_k, self.d_v = config.num_heads, config.key_width, config.value_width
        self.dropout = config.attention_dropout
        self.qkv = projection(config.d_model, self.heads * (2 * self.d_k + self.d_v), scale=config.attention_init)
        self.mix = mix

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x (B, T, D) -> queries, keys (B, H, T, d_k), values (B, H, T, d_v)"""
        widths = [self.heads * self.d_k, self.heads * self.d_k, self.heads * self.d_v]
        queries, keys, values = self.qkv(x).split(widths, dim=-1)
        return split_heads(queries, self.heads), split_heads(keys, self.heads), split_heads(values, self.heads)

    def forward(self, x: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """x (B, T, D), mask (B, 1, 1, T) or None -> (B, T, D)"""
        queries, keys, values = self.project(x)
        drop = self.dropout if self.training else 0.0
        return self.mix(attend(queries, keys, values, mask, causal, drop).transpose(1, 2))

    def step(self, x: Tensor, past: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """One new position. x (B, K, D), past: keys (B, K, H, T, d_k) and values (B, K, H, T, d_v), T grows by one."""
        batch, hypotheses, _ = x.shape
        queries, keys, values = self.project(x.reshape(batch * hypotheses, 1, -1))
        keys = torch.cat((past[0], keys.unflatten(0, (batch, hypotheses))), dim=3)
        values = torch.cat((past[1], values.unflatten(0, (batch, hypotheses))), dim=3)
        context = attend(queries, keys.flatten(0, 1), values.flatten(0, 1), None, False, 0.0)
        return self.mix(context.reshape(batch, hypotheses, self.heads, self.d_v)), (keys, values)

    def empty_past(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The cache (B, 1, H, 0, …) before the first position, in the type of products; x gives B and device."""
        start = x.new_empty(x.shape[0], 1, self.heads, 0, dtype=matrix_type(x))
        return start.new_empty(*start.shape, self.d_k), start.new_empty(*start.shape, self.d_v)


class CrossAttention(nn.Module):
    """Target positions look at the encoder's output; K and V are one product."""

    def __init__(self, config: AnyTransformerConfig, mix: nn.Module):
        super().__init__()
        self.heads, self.d_k, self.d_v = config.num_heads, config.key_width, config.value_width
        self.dropout = config.attention_dropout
        self.query = projection(config.d_model, self.heads * self.d_k, scale=config.attention_init)
        self.kv = projection(config.d_model, self.heads * (self.d_k + self.d_v), scale=config.attention_init)
        self.mix = mix

    def keys_values(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """encoded (B, S, D) -> keys (B, H, S, d_k), values (B, H, S, d_v); once per sentence in decoding."""
        keys, values = self.kv(encoded).split([self.heads * self.d_k, self.heads * self.d_v], dim=-1)
        return split_heads(keys, self.heads), split_heads(values, self.heads)

    def forward(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """x (B, T, D), mask (B, 1, 1, S) or None -> (B, T, D). In decoding T counts hypotheses, not positions."""
        queries = split_heads(self.query(x), self.heads)
        drop = self.dropout if self.training else 0.0
        return self.mix(attend(queries, *keys_values, mask, False, drop).transpose(1, 2))

"""Scaled dot-product attention on a CPU by batched matrix multiplications.

Dimensions: B sentences, H heads, T queries, S keys, d_k and d_v widths of a head.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline.models.kernels.dropout import dropout


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool, dropout_rate: float
) -> Tensor:
    """Compute softmax(Q K^T / sqrt(d_k)) V, with dropout on the weights.

    Args:
        queries: Shape (B, H, T, d_k).
        keys: Shape (B, H, S, d_k).
        values: Shape (B, H, S, d_v).
        mask: Bool, broadcastable to (B, H, T, S), True where a query may attend; None for everywhere.
        causal: Let query t attend to keys 0 … t only, instead of `mask`.
        dropout_rate: Probability of dropping a weight.

    Returns:
        Shape (B, H, T, d_v).
    """
    batch, heads = queries.shape[:2]
    if causal:
        length = keys.shape[2]
        mask = torch.ones(1, 1, length, length, dtype=torch.bool, device=keys.device).tril()
    # Copy before transposing: matrix multiplication reads a transposed matrix well, a strided one badly.
    queries, keys, values = (x.reshape(batch * heads, *x.shape[2:]) for x in (queries, keys, values))
    bias, scale = _additive_mask(mask, batch, heads, queries.dtype), queries.shape[-1] ** -0.5
    scores = torch.baddbmm(bias, queries, keys.transpose(1, 2), beta=int(mask is not None), alpha=scale)
    # In float32, which is also the faster dtype for short rows.
    weights = F.softmax(scores.float(), dim=-1).to(values.dtype)
    weights = dropout(weights, dropout_rate) if dropout_rate else weights
    return torch.bmm(weights, values).unflatten(0, (batch, heads))


def _additive_mask(mask: Tensor | None, batch: int, heads: int, dtype: torch.dtype) -> Tensor:
    """Return 0 where a query may attend and -inf elsewhere, broadcastable to (B * H, T, S)."""
    if mask is None:
        return torch.zeros(1, 1, 1, dtype=dtype)
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
    return bias[0] if len(mask) == 1 else bias.expand(batch, heads, -1, -1).flatten(0, 1)

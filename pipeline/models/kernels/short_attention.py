"""Attention over short sequences on a GPU, one kernel each way.

torch's flash attention computes tiles of 128 positions. For sentences of 30 words most of that is padding, and its
backward pass adds up the queries' gradients in memory, in float32. Here one program holds a head of a sentence in
registers. Gradients are written where the joint projection expects them, so none are concatenated.

Dimensions: B sentences, T queries, S keys, H heads, d_k and d_v widths of a head.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.models.kernels import programs_of_attention
from pipeline.models.kernels.gpu import draw_seed, dropout_levels, fused, power_of_2

LONGEST = 64
"""Positions of a sequence that a program holds."""
MOST_ROWS = (1 << 16) - 1
"""Sentences of a launch, the limit of CUDA for the second dimension of a grid."""


class Heads(NamedTuple):
    """Number of heads and their widths."""

    number: int
    key_width: int
    value_width: int


class Inputs(NamedTuple):
    """Tensors of an attention: queries unless the joint projection has them, projection, mask, and seed of dropout."""

    queries: Tensor | None
    projected: Tensor
    mask: Tensor | None
    seed: Tensor | None


def suits(x: Tensor, longest: int, heads: Heads) -> bool:
    """Return whether the kernels can attend.

    Args:
        x: Joint projection, which gives sentences, device and dtype.
        longest: Positions of the longer side.
        heads: H, d_k and d_v.
    """
    powers = all(width & (width - 1) == 0 and 16 <= width <= 128 for width in heads[1:])
    return longest <= LONGEST and len(x) <= MOST_ROWS and powers and fused(x)


def attend(
    queries: Tensor | None, projected: Tensor, mask: Tensor | None, heads: Heads, causal: bool, dropout_rate: float
) -> Tensor:
    """Compute softmax(Q K^T / sqrt(d_k)) V, with a new random seed for dropout.

    Args:
        queries: Shape (B, T, H d_k); None if they are in the joint projection, in attention within a sequence.
        projected: K and V side by side, shape (B, S, H (d_k + d_v)), or Q, K and V, shape (B, T, H (2 d_k + d_v)).
        mask: Bias of the scores from `attention_mask`, shape (B, 1, 1, S); None if nothing is padded.
        heads: H, d_k and d_v.
        causal: Let a position attend to earlier ones and itself only.
        dropout_rate: Probability of dropping a weight.

    Returns:
        Shape (B, T, H d_v).
    """
    seed = draw_seed(projected) if dropout_rate else None
    queries = None if queries is None else queries.contiguous()
    return _AttentionFunction.apply(queries, projected.contiguous(), mask, seed, heads, causal, dropout_rate)


class _AttentionFunction(torch.autograd.Function):
    """Autograd function of `attend`, which computes the weights again in the backward pass."""

    @staticmethod
    def forward(ctx, queries, projected, mask, seed, heads, causal, dropout_rate):
        inputs = Inputs(queries, projected, mask, seed)
        ctx.save_for_backward(*inputs)
        ctx.settings = heads, causal, dropout_rate
        rows, length, _ = (projected if queries is None else queries).shape
        out = projected.new_empty(rows, length, heads.number * heads.value_width)
        launch(programs_of_attention().attention_forward, inputs, [out], *ctx.settings)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        inputs = Inputs(*ctx.saved_tensors)
        grad_queries = None if inputs.queries is None else torch.empty_like(inputs.queries)
        gradients = grad_queries, torch.empty_like(inputs.projected)
        launch(programs_of_attention().attention_backward, inputs, [grad.contiguous(), *gradients], *ctx.settings)
        return *gradients, None, None, None, None, None


def launch(
    program: Any,
    inputs: Inputs,
    others: Sequence[Tensor | None],
    heads: Heads,
    causal: bool,
    dropout_rate: float,
) -> None:
    """Launch a Triton `program` for each head of a sentence, with `others`, its further tensors; see `attend`."""
    queries, projected, mask, seed = inputs
    rows, num_keys, _ = projected.shape
    num_queries = num_keys if queries is None else queries.shape[1]
    program[(heads.number, rows)](
        queries,
        projected,
        mask,
        *others,
        0 if mask is None else mask.stride(0),
        num_queries,
        num_keys,
        seed,
        *dropout_levels(dropout_rate),
        CAUSAL=causal,
        QUERIES=max(16, power_of_2(num_queries)),
        KEYS=max(16, power_of_2(num_keys)),
        KEY_WIDTH=heads.key_width,
        VALUE_WIDTH=heads.value_width,
        num_warps=warps(max(num_queries, num_keys)),
    )


def warps(longest: int) -> int:
    """Return the number of warps of a program, by the positions of the longer side."""
    return 2 if longest <= 32 else 4

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

from pipeline.models.kernels.gpu import draw_seed, dropout_levels, fused, power_of_2

LONGEST = 64
"""Positions of a sequence that a program holds."""


class Options(NamedTuple):
    """Options of attention: a causal mask, and dropout on the weights."""

    causal: bool
    dropout_rate: float


class Heads(NamedTuple):
    """Number of heads and their widths."""

    number: int
    key_width: int
    value_width: int


def suits(x: Tensor, longest: int, heads: Heads) -> bool:
    """Return whether the kernels can attend.

    Args:
        x: Joint projection, which gives device and dtype.
        longest: Positions of the longer side.
        heads: H, d_k and d_v.
    """
    powers = all(width & (width - 1) == 0 and 16 <= width <= 128 for width in heads[1:])
    return longest <= LONGEST and powers and fused(x)


def self_attention(projected: Tensor, mask: Tensor | None, heads: Heads, causal: bool, dropout_rate: float) -> Tensor:
    """Compute softmax(Q K^T / sqrt(d_k)) V from the joint projection of queries, keys and values.

    Args:
        projected: Q, K and V side by side, contiguous, shape (B, T, H (2 d_k + d_v)).
        mask: Bias of the scores from `attention_mask`, shape (B, 1, 1, T); None if nothing is padded.
        heads: H, d_k and d_v.
        causal: Let a position attend to earlier ones and itself only.
        dropout_rate: Probability of dropping a weight.

    Returns:
        Shape (B, T, H d_v).
    """
    seed = draw_seed(projected) if dropout_rate else None
    return SelfAttentionFunction.apply(projected, mask, seed, heads, Options(causal, dropout_rate))


def cross_attention(
    queries: Tensor, projected: Tensor, mask: Tensor | None, heads: Heads, dropout_rate: float
) -> Tensor:
    """Compute softmax(Q K^T / sqrt(d_k)) V from queries and the joint projection of keys and values.

    Args:
        queries: Contiguous, shape (B, T, H d_k).
        projected: K and V side by side, contiguous, shape (B, S, H (d_k + d_v)).
        mask: Bias of the scores from `attention_mask`, shape (B, 1, 1, S); None if nothing is padded.
        heads: H, d_k and d_v.
        dropout_rate: Probability of dropping a weight.

    Returns:
        Shape (B, T, H d_v).
    """
    seed = draw_seed(projected) if dropout_rate else None
    return CrossAttentionFunction.apply(queries, projected, mask, seed, heads, Options(False, dropout_rate))


class SelfAttentionFunction(torch.autograd.Function):
    """Autograd function of `self_attention`, which computes the weights again in the backward pass."""

    @staticmethod
    def forward(ctx, projected, mask, seed, heads, options):
        """Attend.

        Args:
            ctx: Saves the inputs.
            projected: Shape (B, T, H (2 d_k + d_v)).
            mask: Shape (B, 1, 1, T), or None.
            seed: Random seed, shape (1,); None without dropout.
            heads: H, d_k and d_v.
            options: Causal or not, and dropout.

        Returns:
            Shape (B, T, H d_v).
        """
        ctx.save_for_backward(projected, mask, seed)
        ctx.settings = heads, options
        return attention_out(split(projected, heads, 3), mask, seed, heads, options)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        """Differentiate with respect to the joint projection.

        Args:
            ctx: Holds the inputs.
            grad: Gradient with respect to the output, shape (B, T, H d_v).

        Returns:
            Gradient of the projection; None for the other inputs.
        """
        projected, mask, seed = ctx.saved_tensors
        heads, options = ctx.settings
        grad_projected = torch.empty_like(projected)
        gradients = split(grad_projected, heads, 3)
        fill_gradients(grad, split(projected, heads, 3), gradients, mask, seed, heads, options)
        return grad_projected, None, None, None, None


class CrossAttentionFunction(torch.autograd.Function):
    """Autograd function of `cross_attention`, which computes the weights again in the backward pass."""

    @staticmethod
    def forward(ctx, queries, projected, mask, seed, heads, options):
        """Attend.

        Args:
            ctx: Saves the inputs.
            queries: Shape (B, T, H d_k).
            projected: Shape (B, S, H (d_k + d_v)).
            mask: Shape (B, 1, 1, S), or None.
            seed: Random seed, shape (1,); None without dropout.
            heads: H, d_k and d_v.
            options: Dropout.

        Returns:
            Shape (B, T, H d_v).
        """
        ctx.save_for_backward(queries, projected, mask, seed)
        ctx.settings = heads, options
        return attention_out((queries, *split(projected, heads, 2)), mask, seed, heads, options)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        """Differentiate with respect to queries and joint projection.

        Args:
            ctx: Holds the inputs.
            grad: Gradient with respect to the output, shape (B, T, H d_v).

        Returns:
            Gradients of queries and projection; None for the other inputs.
        """
        queries, projected, mask, seed = ctx.saved_tensors
        heads, options = ctx.settings
        grad_queries, grad_projected = torch.empty_like(queries), torch.empty_like(projected)
        tensors, gradients = split(projected, heads, 2), split(grad_projected, heads, 2)
        fill_gradients(grad, (queries, *tensors), (grad_queries, *gradients), mask, seed, heads, options)
        return grad_queries, grad_projected, None, None, None, None


def split(projected: Tensor, heads: Heads, count: int) -> tuple[Tensor, ...]:
    """Return views of the last `count` of queries, keys and values.

    Args:
        projected: Joint projection, shape (B, T, …).
        heads: H, d_k and d_v.
        count: 3 with queries, 2 without.
    """
    widths = [heads.number * heads.key_width] * (count - 1) + [heads.number * heads.value_width]
    return projected.split(widths, -1)


def attention_out(
    tensors: Sequence[Tensor], mask: Tensor | None, seed: Tensor | None, heads: Heads, options: Options
) -> Tensor:
    """Attend, with one program for each head of a sentence.

    Args:
        tensors: Queries, keys and values, as views of projections.
        mask: Bias of the scores, or None.
        seed: Random seed, shape (1,); None without dropout.
        heads: H, d_k and d_v.
        options: Causal or not, and dropout.

    Returns:
        Shape (B, T, H d_v).
    """
    from pipeline.models.kernels.triton_programs import attention_forward

    queries = tensors[0]
    out = queries.new_empty(*queries.shape[:2], heads.number * heads.value_width)
    launch(attention_forward, tensors, [out], mask, seed, heads, options)
    return out


def fill_gradients(
    grad: Tensor,
    tensors: Sequence[Tensor],
    gradients: Sequence[Tensor],
    mask: Tensor | None,
    seed: Tensor | None,
    heads: Heads,
    options: Options,
) -> None:
    """Compute the gradients of queries, keys and values.

    Args:
        grad: Gradient with respect to the output, shape (B, T, H d_v).
        tensors: Queries, keys and values, as views of projections.
        gradients: Outputs, with the strides of `tensors`.
        mask: Bias of the scores, or None.
        seed: Random seed, shape (1,); None without dropout.
        heads: H, d_k and d_v.
        options: Causal or not, and dropout.
    """
    from pipeline.models.kernels.triton_programs import attention_backward

    launch(attention_backward, tensors, [grad.contiguous(), *gradients], mask, seed, heads, options)


def launch(
    program: Any,
    tensors: Sequence[Tensor],
    others: Sequence[Tensor],
    mask: Tensor | None,
    seed: Tensor | None,
    heads: Heads,
    options: Options,
) -> None:
    """Launch a program for each head of a sentence.

    Args:
        program: In Triton.
        tensors: Queries, keys and values.
        others: Further tensors of the program.
        mask: Bias of the scores, or None.
        seed: Random seed, shape (1,); None without dropout.
        heads: H, d_k and d_v.
        options: Causal or not, and dropout.
    """
    queries, keys, _ = tensors
    rows, num_queries, num_keys = *queries.shape[:2], keys.shape[1]
    threshold, keep_scale = dropout_levels(options.dropout_rate)
    program[(rows * heads.number,)](
        *tensors,
        queries if mask is None else mask,
        *others,
        *queries.stride()[:2],
        *keys.stride()[:2],
        0 if mask is None else mask.stride(0),
        heads.number,
        num_queries,
        num_keys,
        heads.key_width**-0.5,
        queries if seed is None else seed,
        threshold,
        keep_scale,
        DROPS=seed is not None,
        CAUSAL=options.causal,
        BIASED=mask is not None,
        QUERIES=max(16, power_of_2(num_queries)),
        KEYS=max(16, power_of_2(num_keys)),
        KEY_WIDTH=heads.key_width,
        VALUE_WIDTH=heads.value_width,
        num_warps=warps(max(num_queries, num_keys)),
    )


def warps(longest: int) -> int:
    """Return the number of warps of a program, by the positions of the longer side."""
    return 2 if longest <= 32 else 4

"""Dropout on a GPU between its neighbours, one kernel each way.

torch needs a kernel for each of embedding, scale, sum, dropout and normalisation, and each reads and writes float32
vectors. Here one kernel computes Dropout(embedding · scale + positions) and another LayerNorm(x +
Dropout(sublayer(x))). The backward pass draws the mask of the dropout again, from the same seed.

Dimensions: B sentences, T positions, N positions of all sentences, D features, V vocabulary.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.models.kernels import programs
from pipeline.models.kernels.gpu import draw_seed, dropout_levels, fused

ROWS, ROW_BLOCK = 32, 4
"""Rows whose gradients of weight and bias a program sums, and rows that it holds at once."""
NARROWEST, WIDEST = 64, 4096


def can_normalise(residual: Tensor, output: Tensor) -> bool:
    """Return whether the kernels can normalise an `output` (…, D) and its `residual`."""
    same = residual.dtype == output.dtype and residual.shape == output.shape[-residual.dim() :]
    return fused(output) and power_of_2_width(output) and same


def power_of_2_width(x: Tensor) -> bool:
    """Return whether a program can hold a row of a tensor (…, D)."""
    width = x.shape[-1]
    return width & (width - 1) == 0 and NARROWEST <= width <= WIDEST


def residual_norm(
    residual: Tensor, output: Tensor, weight: Tensor, bias: Tensor, eps: float, probability: float
) -> Tensor:
    """Compute LayerNorm(residual + Dropout(output)).

    Args:
        residual: Shape (…, D), or the last dimensions of `output`.
        output: Shape (…, D).
        weight: Shape (D,).
        bias: Shape (D,).
        eps: Added to the variance.
        probability: Probability of dropping an element of `output`, in [0, 1).

    Returns:
        Shape of `output`.
    """
    seed = draw_seed(output) if probability else None
    return _ResidualNormFunction.apply(residual.contiguous(), output.contiguous(), weight, bias, seed, eps, probability)


class _ResidualNormFunction(torch.autograd.Function):
    """Autograd function of `residual_norm`, which saves the sum before normalisation."""

    @staticmethod
    def forward(ctx, residual, output, weight, bias, seed, eps, probability):
        width = output.shape[-1]
        rows, residual_rows = output.numel() // width, residual.numel() // width
        total, normed = torch.empty_like(output), torch.empty_like(output)
        statistics = torch.empty(2, rows, device=output.device)
        ctx.levels, ctx.shape = dropout_levels(probability), residual.shape
        inputs = residual, output, weight, bias, seed
        sizes = {"WIDTH": width, "num_warps": max(1, min(8, width // 512))}
        programs().residual_norm_forward[(rows,)](
            *inputs, total, normed, *statistics, residual_rows, eps, *ctx.levels, **sizes
        )
        ctx.save_for_backward(total, weight, seed, statistics)
        return normed

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        total, weight, seed, statistics = ctx.saved_tensors
        grad, rows, width = grad.contiguous(), statistics.shape[1], total.shape[-1]
        grid = (-(-rows // ROWS),)
        grad_residual = torch.empty_like(total)
        grad_output = grad_residual if seed is None else torch.empty_like(total)
        sums = torch.empty(2, *grid, width, device=grad.device)
        inputs = grad, total, weight, seed, *statistics
        sizes = {"ROWS": ROWS, "ROW_BLOCK": ROW_BLOCK, "WIDTH": width}
        warps = max(4, min(8, width // 128))
        outputs = grad_residual, grad_output, *sums
        programs().residual_norm_backward[grid](*inputs, *outputs, rows, *ctx.levels, **sizes, num_warps=warps)
        grad_weight, grad_bias = sums.sum(1).to(weight.dtype)
        return grad_residual.sum_to_size(ctx.shape), grad_output, grad_weight, grad_bias, None, None, None


def can_embed(weight: Tensor, positions: Tensor) -> bool:
    """Return whether the kernels can embed by `weight` (V, D) and `positions`, which they do in training only."""
    constant = positions.dim() == 2 and not positions.requires_grad and torch.is_grad_enabled()
    return constant and power_of_2_width(weight) and fused(weight, output_dtype(weight))


def output_dtype(weight: Tensor) -> torch.dtype:
    """Return the dtype of autocast on a GPU, or that of the embeddings without autocast."""
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else weight.dtype


def embed(weight: Tensor, tokens: Tensor, positions: Tensor, scale: float, probability: float) -> Tensor:
    """Compute Dropout(embedding · scale + positions).

    Args:
        weight: Float32 embeddings, shape (V, D).
        tokens: Shape (B, T).
        positions: Float32 encodings, shape (T, D), or (1, D) for all positions.
        scale: Factor of the embeddings.
        probability: Probability of dropping an element, in [0, 1).

    Returns:
        Shape (B, T, D), in the dtype of autocast.
    """
    seed = draw_seed(weight) if probability else None
    return _EmbeddingFunction.apply(weight, tokens.contiguous(), positions.contiguous(), seed, scale, probability)


class _EmbeddingFunction(torch.autograd.Function):
    """Autograd function of `embed`."""

    @staticmethod
    def forward(ctx, weight, tokens, positions, seed, scale, probability):
        ctx.save_for_backward(tokens, seed)
        ctx.symbols, ctx.dtype, ctx.factors = len(weight), weight.dtype, (scale, *dropout_levels(probability))
        out = weight.new_empty(*tokens.shape, weight.shape[1], dtype=output_dtype(weight))
        inputs = tokens, weight, positions, out, seed, len(positions)
        programs().embed_forward[(tokens.numel(),)](*inputs, *ctx.factors, WIDTH=weight.shape[1], num_warps=1)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        """Differentiate with respect to the embeddings; torch sums the gradients of equal symbols."""
        tokens, seed = ctx.saved_tensors
        wide = torch.empty_like(grad, dtype=ctx.dtype, memory_format=torch.contiguous_format)
        sizes = {"WIDTH": grad.shape[-1], "num_warps": 1}
        programs().embed_backward[(tokens.numel(),)](grad.contiguous(), wide, seed, *ctx.factors, **sizes)
        grad_weight = torch.ops.aten.embedding_dense_backward(wide, tokens, ctx.symbols, -1, False)
        return grad_weight, None, None, None, None, None

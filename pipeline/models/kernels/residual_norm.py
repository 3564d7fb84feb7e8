"""LayerNorm(x + Dropout(sublayer(x))) on a GPU, one kernel each way.

The mask of the dropout is drawn again in the backward pass, from the same seed.

Dimensions: N positions, D features.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.models.kernels.gpu import draw_seed, dropout_levels, fused

ROWS, ROW_BLOCK = 32, 4
"""Rows whose gradients of weight and bias a program sums, and rows that it holds at once."""
NARROWEST, WIDEST = 64, 4096


def suits(residual: Tensor, output: Tensor) -> bool:
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
        from pipeline.models.kernels.triton_programs import residual_norm_forward

        width = output.shape[-1]
        rows, residual_rows = output.numel() // width, residual.numel() // width
        total, normed = torch.empty_like(output), torch.empty_like(output)
        statistics = torch.empty(2, rows, device=output.device)
        ctx.levels, ctx.shape = dropout_levels(probability), residual.shape
        inputs = residual, output, weight, bias, seed
        sizes = {"WIDTH": width, "num_warps": max(1, min(8, width // 512))}
        residual_norm_forward[(rows,)](*inputs, total, normed, *statistics, residual_rows, eps, *ctx.levels, **sizes)
        ctx.save_for_backward(total, weight, seed, statistics)
        return normed

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        from pipeline.models.kernels.triton_programs import residual_norm_backward

        total, weight, seed, statistics = ctx.saved_tensors
        grad, rows, width = grad.contiguous(), statistics.shape[1], total.shape[-1]
        programs = -(-rows // ROWS)
        grad_residual = torch.empty_like(total)
        grad_output = grad_residual if seed is None else torch.empty_like(total)
        sums = torch.empty(2, programs, width, device=grad.device)
        inputs = grad, total, weight, seed, *statistics
        sizes = {"ROWS": ROWS, "ROW_BLOCK": ROW_BLOCK, "WIDTH": width}
        warps = max(4, min(8, width // 128))
        outputs = grad_residual, grad_output, *sums
        residual_norm_backward[(programs,)](*inputs, *outputs, rows, *ctx.levels, **sizes, num_warps=warps)
        grad_weight, grad_bias = sums.sum(1).to(weight.dtype)
        return grad_residual.sum_to_size(ctx.shape), grad_output, grad_weight, grad_bias, None, None, None

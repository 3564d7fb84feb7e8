"""Feed-forward layers on a GPU, whose ReLU needs no pass over memory of its own.

Backward, one kernel applies the gradient of the ReLU and sums that of the bias; for weighted branches also those of
alpha.

Dimensions: N positions, M branches, D features, F hidden units.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.models.kernels import programs

ROWS, ROW_BLOCK, COLUMNS = 128, 8, 512
"""Rows whose gradients a program sums, rows that it holds at once, and its columns."""


def relu_network(
    x: Tensor, inner: Tensor, inner_bias: Tensor, outer: Tensor, outer_bias: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute max(0, x W_1 + b_1) W_2 + b_2.

    A residual connection adds the first result. So the gradients of both meet in one matrix multiplication.

    Args:
        x: Shape (…, D).
        inner: W_1 transposed, shape (F, D).
        inner_bias: b_1, shape (F,).
        outer: W_2 transposed, shape (D, F).
        outer_bias: b_2, shape (D,).

    Returns:
        x itself, and the output, shape (…, D).
    """
    return _ReluNetworkFunction.apply(x, inner, inner_bias, outer, outer_bias)


class _ReluNetworkFunction(torch.autograd.Function):
    """Autograd function of `relu_network`."""

    @staticmethod
    def forward(ctx, x, inner, inner_bias, outer, outer_bias):
        rows = x.flatten(0, -2)
        hidden = torch._addmm_activation(inner_bias, rows, inner.t())
        ctx.save_for_backward(rows, inner, hidden, outer)
        return x.view_as(x), torch.addmm(outer_bias, hidden, outer.t()).view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_skip, grad):
        rows, inner, hidden, outer = ctx.saved_tensors
        shape, grad = grad.shape, grad.flatten(0, -2)
        grad_hidden = grad @ outer
        grad_bias = relu_gradient_(grad_hidden, hidden).to(inner.dtype)
        grad_x = torch.addmm(grad_skip.flatten(0, -2), grad_hidden, inner).view(shape)
        return grad_x, grad_hidden.t() @ rows, grad_bias, grad.t() @ hidden, sum_rows(grad).to(outer.dtype)


def relu_gradient_(grad: Tensor, hidden: Tensor) -> Tensor:
    """Zero `grad` (N, F) in place where the ReLU's output `hidden` (N, F) is zero; return its float32 sums (F,)."""
    rows, columns = hidden.shape
    grid = -(-rows // ROWS), -(-columns // COLUMNS)
    sums = torch.empty(grid[0], columns, device=grad.device)
    sizes = {"ROWS": ROWS, "ROW_BLOCK": ROW_BLOCK, "COLUMNS": COLUMNS}
    programs().relu_backward[grid](hidden, grad, sums, rows, columns, **sizes, num_warps=4)
    return sums.sum(0)


def sum_rows(x: Tensor) -> Tensor:
    """Sum the rows of a matrix (N, F) in float32, shape (F,)."""
    x, (rows, columns) = x.contiguous(), x.shape
    grid = -(-rows // ROWS), -(-columns // COLUMNS)
    sums = torch.empty(grid[0], columns, device=x.device)
    programs().column_sums[grid](x, sums, rows, columns, ROWS=ROWS, ROW_BLOCK=ROW_BLOCK, COLUMNS=COLUMNS, num_warps=4)
    return sums.sum(0)


def summed_branches(x: Tensor, inner: Tensor, inner_bias: Tensor, alpha: Tensor) -> Tensor:
    """Compute sum_i alpha_i max(0, x_i W_1 + b_1).

    Args:
        x: Inputs of the branches, shape (M, N, D).
        inner: W_1 transposed, shape (F, D).
        inner_bias: b_1, shape (F,).
        alpha: Float32, shape (M,).

    Returns:
        Shape (N, F), in the dtype of `x`.
    """
    return _SummedBranchesFunction.apply(x, inner, inner_bias, alpha)


class _SummedBranchesFunction(torch.autograd.Function):
    """Autograd function of `summed_branches`."""

    @staticmethod
    def forward(ctx, x, inner, inner_bias, alpha):
        weight, alpha = inner.to(x.dtype), alpha.contiguous()
        hidden = torch._addmm_activation(inner_bias.to(x.dtype), x.flatten(0, 1), weight.t())
        ctx.save_for_backward(x, weight, hidden, alpha)
        ctx.dtype = inner.dtype
        return sum_branches(alpha, hidden.view(len(x), -1, len(weight)))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight, hidden, alpha = ctx.saved_tensors
        grad_hidden, grad_alpha, grad_bias = branch_gradients(alpha, hidden.view(len(x), *grad.shape), grad, relu=True)
        grad_hidden = grad_hidden.flatten(0, 1)
        grad_inner = (grad_hidden.t() @ x.flatten(0, 1)).to(ctx.dtype)
        return (grad_hidden @ weight).view(x.shape), grad_inner, grad_bias.to(ctx.dtype), grad_alpha


class _WeightedSumFunction(torch.autograd.Function):
    """Autograd function of the sum of branches weighted by alpha."""

    @staticmethod
    def forward(ctx, alpha, x):
        x, alpha = x.contiguous(), alpha.contiguous()
        ctx.save_for_backward(alpha, x)
        return sum_branches(alpha, x.reshape(len(x), -1, x.shape[-1])).view(x.shape[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        alpha, x = ctx.saved_tensors
        grad_x, grad_alpha, _ = branch_gradients(
            alpha, x.reshape(len(x), -1, x.shape[-1]), grad.reshape(-1, x.shape[-1]), False
        )
        return grad_alpha, grad_x.view(x.shape)


def weighted_sum(alpha: Tensor, x: Tensor) -> Tensor:
    """Compute sum_i alpha_i x_i, shape (…, F), of float32 `alpha` (M,) and `x` (M, …, F), in the dtype of `x`."""
    return _WeightedSumFunction.apply(alpha, x)


def sum_branches(alpha: Tensor, x: Tensor) -> Tensor:
    """Sum branches (M, N, F) weighted by alpha (M,), shape (N, F)."""
    branches, rows, columns = x.shape
    total = x.new_empty(rows, columns)
    grid = -(-rows // ROW_BLOCK), -(-columns // COLUMNS)
    sizes = {"BRANCHES": branches, "ROW_BLOCK": ROW_BLOCK, "COLUMNS": COLUMNS}
    programs().branches_forward[grid](x, alpha, total, rows, columns, **sizes, num_warps=4)
    return total


def branch_gradients(alpha: Tensor, x: Tensor, grad: Tensor, relu: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Differentiate a sum of branches.

    Args:
        alpha: Shape (M,).
        x: Branches, shape (M, N, F).
        grad: Gradient with respect to the sum, shape (N, F).
        relu: `x` is the output of a ReLU, with respect to whose input the first gradient is computed.

    Returns:
        Gradients of `x`; of alpha; and, with `relu`, the first one summed over branches and rows (F,), else
        something undefined.
    """
    branches, rows, columns = x.shape
    grid = -(-rows // ROWS), -(-columns // COLUMNS)
    grad_x = torch.empty_like(x)
    grad_alpha = torch.empty(branches, grid[0] * grid[1], device=x.device)
    grad_bias = torch.empty(grid[0] if relu else 0, columns, device=x.device)
    sizes = {"RELU": relu, "BRANCHES": branches, "ROWS": ROWS, "ROW_BLOCK": ROW_BLOCK, "COLUMNS": COLUMNS}
    outputs = grad_x, grad_alpha, grad_bias
    programs().branches_backward[grid](x, alpha, grad.contiguous(), *outputs, rows, columns, **sizes, num_warps=4)
    return grad_x, grad_alpha.sum(1), grad_bias.sum(0)

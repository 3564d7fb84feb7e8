"""Matrix multiplications of the hand-written loops, in the dtype that autocast asks for.

Dimensions: B sentences, T steps, S positions, D features.
"""

import torch
from torch import Tensor


def matmul_dtype(like: Tensor) -> torch.dtype:
    """Return the dtype of matrix multiplications: autocast's, or that of `like`."""
    device = like.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else like.dtype


def loop_dtype(like: Tensor) -> torch.dtype:
    """Return the dtype of matrix multiplications inside a loop.

    On a GPU a loop is bound by kernel launches, and each cast is one. There it keeps the dtype of `like`, whose
    matrix multiplications run in TF32.
    """
    return like.dtype if like.is_cuda else matmul_dtype(like)


def matmul(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x @ weight + bias, multiplied in the dtype of `weight`, in the dtype of `x`."""
    if x.dtype != weight.dtype:
        found = (x.to(weight.dtype) @ weight).to(x.dtype)
        return found if bias is None else found.add_(bias)
    return x @ weight if bias is None else torch.addmm(bias, x, weight)


def add_matmul_(total: Tensor, x: Tensor, weight: Tensor) -> None:
    """Add x @ weight to `total` in place, multiplied in the dtype of `weight`."""
    if x.dtype == weight.dtype == total.dtype:
        total.addmm_(x, weight)
    else:
        total += x.to(weight.dtype) @ weight


def weight_gradient(grad_output: Tensor, inputs: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute the gradient of a weight from all steps at once.

    Args:
        grad_output: Shape (T, B, rows).
        inputs: Shape (T, B, columns).
        dtype: Dtype of the matrix multiplication.

    Returns:
        Shape (rows, columns), in the dtype of `inputs`.
    """
    return (grad_output.flatten(0, 1).t().to(dtype) @ inputs.flatten(0, 1).to(dtype)).to(inputs.dtype)


def dot_rows(vectors: Tensor, rows: Tensor) -> Tensor:
    """Return the dot products (B, S) of vectors (B, D) with their rows (B, S, D).

    A row vector times a matrix is ten times as fast as a matrix times a column vector.
    """
    return torch.bmm(vectors.unsqueeze(1), rows.transpose(1, 2)).squeeze(1)


def sum_rows(weights: Tensor, rows: Tensor, out: Tensor | None = None) -> Tensor:
    """Sum rows (B, S, D) with weights (B, S).

    Returns:
        Shape (B, D); `out` if it is given.
    """
    if out is None:
        return torch.bmm(weights.unsqueeze(1), rows).squeeze(1)
    if out.dtype != rows.dtype:
        return out.copy_(sum_rows(weights.to(rows.dtype), rows))
    return torch.bmm(weights.unsqueeze(1), rows, out=out.unsqueeze(1)).squeeze(1)

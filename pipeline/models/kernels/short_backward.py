"""Operators whose generic backward pass is slow on a GPU: a weighted sum of branches, and the reversal of sequences.

Dimensions: M branches, B sequences, S positions, H features.
"""

from torch import Tensor
from torch.autograd import Function


def weighted_sum(alpha: Tensor, x: Tensor) -> Tensor:
    """Return sum_i alpha_i x_i of alpha (M,) and x (M, …)."""
    return WeightedSumFunction.apply(alpha, x)


class WeightedSumFunction(Function):
    """`weighted_sum`, whose gradient is an elementwise multiplication in place of a matrix multiplication.

    cuBLAS runs the outer product of alpha and the gradient as hundreds of small kernels: a sixth of a training step.
    """

    @staticmethod
    def forward(ctx, alpha: Tensor, x: Tensor) -> Tensor:
        """Sum alpha (M,) times x (M, …)."""
        ctx.save_for_backward(alpha, x)
        return (alpha.to(x.dtype) @ x.flatten(1)).unflatten(0, x.shape[1:])

    @staticmethod
    def backward(ctx, grad: Tensor):
        """Return the gradients of alpha and x."""
        alpha, x = ctx.saved_tensors
        weights = alpha.to(grad.dtype).view(-1, *[1] * grad.dim())
        return (x.flatten(1) @ grad.flatten().to(x.dtype)).to(alpha.dtype), (weights * grad).to(x.dtype)


def gather_positions(x: Tensor, indices: Tensor) -> Tensor:
    """Put position indices[b, j] of sequence b at j.

    Args:
        x: Shape (B, S, H).
        indices: Shape (B, S); they must be their own inverse.
    """
    return ReversalFunction.apply(x, indices)


class ReversalFunction(Function):
    """Reversal whose gradient is reversed by the same indices, which are their own inverse.

    The backward pass of `gather` can't know that. It adds gradients up at sorted positions, which takes a fifth of a
    long recogniser's training step on a GPU.
    """

    @staticmethod
    def forward(ctx, x: Tensor, indices: Tensor) -> Tensor:
        """Gather x (B, S, H) at indices (B, S)."""
        ctx.save_for_backward(indices)
        return x.gather(1, indices.unsqueeze(2).expand_as(x))

    @staticmethod
    def backward(ctx, grad: Tensor):
        """Gather the gradient at the same indices."""
        (indices,) = ctx.saved_tensors
        return grad.gather(1, indices.unsqueeze(2).expand_as(grad)), None

"""Operators that torch runs slowly: a weighted sum of branches, the reversal of sequences, and large convolutions.

Dimensions: M branches, B sequences, S positions or frames, H features of a position. Of a convolution: C input and O
output channels, F features, S' and F' after the strides, W x Z kernel.
"""

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F


def weighted_sum(alpha: Tensor, x: Tensor) -> Tensor:
    """Compute sum_i alpha_i x_i.

    Args:
        alpha: Shape (M,).
        x: Shape (M, …).

    Returns:
        Shape (…), in the dtype of `x`.
    """
    return WeightedSumFunction.apply(alpha, x)


class WeightedSumFunction(Function):
    """Autograd function of `weighted_sum`, whose gradient is an elementwise multiplication.

    cuBLAS runs the outer product of alpha and the gradient as hundreds of small kernels: a sixth of a training step.
    """

    @staticmethod
    def forward(ctx, alpha: Tensor, x: Tensor) -> Tensor:
        """Sum the branches.

        Args:
            ctx: Saves both inputs.
            alpha: Shape (M,).
            x: Shape (M, …).

        Returns:
            Shape (…).
        """
        ctx.save_for_backward(alpha, x)
        return (alpha.to(x.dtype) @ x.flatten(1)).unflatten(0, x.shape[1:])

    @staticmethod
    def backward(ctx, grad: Tensor):
        """Differentiate with respect to both inputs.

        Args:
            ctx: Holds the inputs.
            grad: Gradient with respect to the sum, shape (…).

        Returns:
            Gradients of alpha (M,) and x (M, …).
        """
        alpha, x = ctx.saved_tensors
        weights = alpha.to(grad.dtype).view(-1, *[1] * grad.dim())
        return (x.flatten(1) @ grad.flatten().to(x.dtype)).to(alpha.dtype), (weights * grad).to(x.dtype)


def gather_positions(x: Tensor, indices: Tensor) -> Tensor:
    """Put position indices[b, j] of sequence b at j.

    Args:
        x: Shape (B, S, H).
        indices: Shape (B, S); they must be their own inverse.

    Returns:
        Shape (B, S, H).
    """
    return ReversalFunction.apply(x, indices)


class ReversalFunction(Function):
    """Autograd function of a reversal, whose gradient is gathered at the same indices: they are their own inverse.

    The backward pass of `gather` can't know that. It adds gradients up at sorted positions, which takes a fifth of a
    long recogniser's training step on a GPU.
    """

    @staticmethod
    def forward(ctx, x: Tensor, indices: Tensor) -> Tensor:
        """Gather positions.

        Args:
            ctx: Saves the indices.
            x: Shape (B, S, H).
            indices: Shape (B, S).

        Returns:
            Shape (B, S, H).
        """
        ctx.save_for_backward(indices)
        return x.gather(1, indices.unsqueeze(2).expand_as(x))

    @staticmethod
    def backward(ctx, grad: Tensor):
        """Gather the gradient at the same indices.

        Args:
            ctx: Holds the indices.
            grad: Gradient with respect to the output, shape (B, S, H).

        Returns:
            Gradient with respect to `x`, (B, S, H); None for the indices.
        """
        (indices,) = ctx.saved_tensors
        return grad.gather(1, indices.unsqueeze(2).expand_as(grad)), None


def conv2d_over_frames(convolution: nn.Conv2d, x: Tensor) -> Tensor:
    """Apply a two-dimensional convolution as a one-dimensional convolution over frames, on a CPU.

    The kernel must be odd, with half of it as padding. The kernels of Deep Speech 2 are as high as there are features,
    so this form has hardly more multiplications. torch computes the gradient of so large a kernel three to ten times as
    slowly as the rest.

    Args:
        convolution: Gives weight (O, C, W, Z), bias and stride.
        x: Shape (B, C, S, F).

    Returns:
        Shape (B, O, S', F').
    """
    bands, (width, height), (hop, jump) = x.shape[3], convolution.kernel_size, convolution.stride
    # Kernel rows that each output feature multiplies the input features by, shape (O, C, W, F', F).
    first = bands + height // 2 - torch.arange(0, bands, jump)
    rows = F.pad(convolution.weight, (bands, bands)).unfold(3, bands, 1)[:, :, :, first]
    weight = rows.permute(0, 3, 1, 4, 2).flatten(2, 3).flatten(0, 1)
    bias = None if convolution.bias is None else convolution.bias.repeat_interleave(len(first))
    out = F.conv1d(x.transpose(2, 3).flatten(1, 2), weight, bias, hop, width // 2)
    return out.unflatten(1, (-1, len(first))).transpose(2, 3)

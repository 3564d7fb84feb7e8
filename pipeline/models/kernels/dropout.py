"""Dropout with cheap masks on a CPU.

`torch.nn.functional.dropout` draws one Bernoulli variable after the other, which takes a quarter of a training step on
two cores. Here each element gets one random byte. Eight bytes are drawn at a time from torch's global generator, so
`torch.manual_seed` fixes every mask. A mask is applied by a bitwise AND.
"""

import torch
from torch import Tensor

# The upper seven bits of a byte are compared with a threshold, so that differences do not overflow.
LEVELS = 1 << 7
DITHER = 1 << 12
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero each element with `probability` and scale the others by 1 / (1 - probability).

    Args:
        x: Tensor of any shape, of a floating dtype with 2, 4 or 8 bytes.
        probability: In (0, 1).

    Returns:
        Tensor of the shape of `x`.
    """
    return DropoutFunction.apply(x, probability)


def dropout_add(residual: Tensor, x: Tensor, probability: float) -> Tensor:
    """Compute residual + dropout(x).

    Args:
        residual: Broadcastable to the shape of `x`; gives the dtype of the result.
        x: Tensor of any shape.
        probability: Probability of dropping an element of `x`, in (0, 1).

    Returns:
        Tensor of the shape of `x`.
    """
    return DropoutAddFunction.apply(residual, x, probability)


def relu_dropout(x: Tensor, probability: float) -> Tensor:
    """Compute dropout(max(0, x)).

    Args:
        x: Tensor of any shape.
        probability: Probability of dropping an element, in (0, 1).

    Returns:
        Tensor of the shape of `x`.
    """
    return ReluDropoutFunction.apply(x, probability)


def keep_mask(shape: torch.Size, probability: float) -> Tensor:
    """Draw a mask of bits to keep.

    An element is dropped with exactly `probability`, although a byte only resolves multiples of 1/128. To this end the
    threshold of every place in a row of 4096 is rounded up or down at random. Two elements at the same place of
    different rows are thereby correlated, by less than 0.002. All others are independent.

    Args:
        shape: Shape of the mask.
        probability: Probability of dropping an element.

    Returns:
        Int16 mask of `shape`: -1 (all bits) to keep an element, 0 to drop it.
    """
    rows = -(-shape.numel() // DITHER)
    draws = torch.empty(rows * DITHER // 8, dtype=torch.int64).random_(-(1 << 63), None).view(torch.int8)
    thresholds = (torch.rand(DITHER) + (probability - 0.5) * LEVELS).floor().to(torch.int8)
    # Negative where dropped. The sign is then spread over the byte, and the byte over two.
    below = draws.bitwise_right_shift_(1).view(rows, DITHER).sub_(thresholds)
    dropped = below.bitwise_right_shift_(7).flatten()[: shape.numel()]
    return dropped.to(torch.int16).bitwise_not_().view(shape)


def apply_mask(x: Tensor, mask: Tensor) -> Tensor:
    """Set the dropped elements to zero.

    Args:
        x: Tensor of any shape.
        mask: Result of `keep_mask`, in the shape of `x`.

    Returns:
        Tensor of the shape of `x`.
    """
    integer = INTEGERS[x.element_size()]
    return x.view(integer).bitwise_and(mask.to(integer)).view(x.dtype)


class DropoutFunction(torch.autograd.Function):
    """Autograd function of `dropout`, which saves a two-byte mask for the backward pass."""

    @staticmethod
    def forward(ctx, x: Tensor, probability: float) -> Tensor:
        """Mask and scale `x`.

        Args:
            ctx: Saves mask and scale.
            x: Tensor of any shape.
            probability: Probability of dropping an element.

        Returns:
            Tensor of the shape of `x`.
        """
        mask = keep_mask(x.shape, probability)
        ctx.save_for_backward(mask)
        ctx.scale = 1 / (1 - probability)
        return apply_mask(x, mask).mul_(ctx.scale)

    @staticmethod
    def backward(ctx, grad: Tensor):
        """Mask and scale the gradient.

        Args:
            ctx: Holds mask and scale.
            grad: Gradient with respect to the output, in its shape.

        Returns:
            Gradient with respect to `x`; None for the probability.
        """
        (mask,) = ctx.saved_tensors
        return apply_mask(grad, mask).mul_(ctx.scale), None


class DropoutAddFunction(torch.autograd.Function):
    """Autograd function of `dropout_add`, in one pass over memory."""

    @staticmethod
    def forward(ctx, residual: Tensor, x: Tensor, probability: float) -> Tensor:
        """Add the masked and scaled `x` to `residual`.

        Args:
            ctx: Saves mask and scale.
            residual: Broadcastable to the shape of `x`.
            x: Tensor of any shape.
            probability: Probability of dropping an element of `x`.

        Returns:
            Tensor of the shape of `x`.
        """
        mask = keep_mask(x.shape, probability)
        ctx.save_for_backward(mask)
        ctx.scale, ctx.dtype = 1 / (1 - probability), x.dtype
        return torch.add(residual, apply_mask(x, mask).to(residual.dtype), alpha=ctx.scale)

    @staticmethod
    def backward(ctx, grad: Tensor):
        """Pass the gradient to the residual, and masked and scaled to `x`.

        Args:
            ctx: Holds mask and scale.
            grad: Gradient with respect to the output, in its shape.

        Returns:
            Gradients with respect to `residual` and `x`; None for the probability.
        """
        (mask,) = ctx.saved_tensors
        return grad, apply_mask(grad.to(ctx.dtype), mask).mul_(ctx.scale), None


class ReluDropoutFunction(torch.autograd.Function):
    """Autograd function of `relu_dropout`, which saves no mask."""

    @staticmethod
    def forward(ctx, x: Tensor, probability: float) -> Tensor:
        """Clamp, mask and scale `x`.

        Args:
            ctx: Saves output and scale.
            x: Tensor of any shape.
            probability: Probability of dropping an element.

        Returns:
            Tensor of the shape of `x`.
        """
        ctx.scale = 1 / (1 - probability)
        out = apply_mask(x, keep_mask(x.shape, probability)).clamp_min_(0).mul_(ctx.scale)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        """Pass the gradient where the output is positive.

        A dropped unit and an inactive one are both zero and pass no gradient, so the mask need not be saved.

        Args:
            ctx: Holds output and scale.
            grad: Gradient with respect to the output, in its shape.

        Returns:
            Gradient with respect to `x`; None for the probability.
        """
        (out,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grad, out, 0).mul_(ctx.scale), None

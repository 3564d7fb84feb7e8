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
    """Compute dropout with a `probability` in (0, 1), as `pipeline.models.layers.regularisation.dropout`."""
    return _DropoutFunction.apply(x, probability)


def dropout_add(residual: Tensor, x: Tensor, probability: float) -> Tensor:
    """Compute `residual` + dropout(`x`), as `pipeline.models.layers.regularisation.dropout_add`."""
    return _DropoutAddFunction.apply(residual, x, probability)


def relu_dropout(x: Tensor, probability: float) -> Tensor:
    """Compute dropout(max(0, `x`)), as `pipeline.models.layers.regularisation.relu_dropout`."""
    return _ReluDropoutFunction.apply(x, probability)


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
    """Set the elements of `x` (…) to zero that the `mask` (…) of `keep_mask` drops."""
    integer = INTEGERS[x.element_size()]
    return x.view(integer).bitwise_and(mask.to(integer)).view(x.dtype)


class _DropoutFunction(torch.autograd.Function):
    """Autograd function of `dropout`, which saves a two-byte mask for the backward pass."""

    @staticmethod
    def forward(ctx, x: Tensor, probability: float) -> Tensor:
        mask = keep_mask(x.shape, probability)
        ctx.save_for_backward(mask)
        ctx.scale = 1 / (1 - probability)
        return apply_mask(x, mask).mul_(ctx.scale)

    @staticmethod
    def backward(ctx, grad: Tensor):
        (mask,) = ctx.saved_tensors
        return apply_mask(grad, mask).mul_(ctx.scale), None


class _DropoutAddFunction(torch.autograd.Function):
    """Autograd function of `dropout_add`, in one pass over memory."""

    @staticmethod
    def forward(ctx, residual: Tensor, x: Tensor, probability: float) -> Tensor:
        mask = keep_mask(x.shape, probability)
        ctx.save_for_backward(mask)
        ctx.scale, ctx.dtype = 1 / (1 - probability), x.dtype
        return torch.add(residual, apply_mask(x, mask).to(residual.dtype), alpha=ctx.scale)

    @staticmethod
    def backward(ctx, grad: Tensor):
        (mask,) = ctx.saved_tensors
        return grad, apply_mask(grad.to(ctx.dtype), mask).mul_(ctx.scale), None


class _ReluDropoutFunction(torch.autograd.Function):
    """Autograd function of `relu_dropout`, which saves no mask."""

    @staticmethod
    def forward(ctx, x: Tensor, probability: float) -> Tensor:
        ctx.scale = 1 / (1 - probability)
        out = apply_mask(x, keep_mask(x.shape, probability)).clamp_min_(0).mul_(ctx.scale)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        """Pass the gradient where the output is positive: a dropped unit and an inactive one are both zero."""
        (out,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grad, out, 0).mul_(ctx.scale), None

"""Dropout whose masks cost little on a CPU.

`torch.nn.functional.dropout` draws one Bernoulli variable after the other, a quarter of a training step on two cores.
Here each element gets one random byte, drawn eight at a time from torch's global generator (so `torch.manual_seed`
fixes every mask), and a mask is applied by a bitwise AND. Other devices draw masks in parallel already and use torch's
own dropout.
"""

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

# A byte's upper seven bits are compared with a threshold, so that differences don't overflow.
LEVELS = 1 << 7
DITHER = 1 << 12
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def keep_mask(shape: torch.Size, probability: float) -> Tensor:
    """int16 mask of `shape`: all bits set (-1) where an element is kept, 0 where it is dropped.

    An element is dropped with exactly `probability`, although a byte knows only multiples of 1/128: the threshold of
    every place in a row of 4096 is rounded up or down at random. Two elements at the same place of different rows are
    thereby correlated, by less than 0.002; all others are independent.
    """
    rows = -(-shape.numel() // DITHER)
    draws = torch.empty(rows * DITHER // 8, dtype=torch.int64).random_(-(1 << 63), None).view(torch.int8)
    thresholds = (torch.rand(DITHER) + (probability - 0.5) * LEVELS).floor().to(torch.int8)
    # Negative where dropped; the sign is then spread over the byte, and the byte over two.
    below = draws.bitwise_right_shift_(1).view(rows, DITHER).sub_(thresholds)
    dropped = below.bitwise_right_shift_(7).flatten()[: shape.numel()]
    return dropped.to(torch.int16).bitwise_not_().view(shape)


def keep(x: Tensor, mask: Tensor) -> Tensor:
    """`x` where the mask is set, zero elsewhere."""
    integer = INTEGERS[x.element_size()]
    return x.view(integer).bitwise_and(mask.to(integer)).view(x.dtype)


class Dropout(Function):
    @staticmethod
    def forward(ctx, x: Tensor, probability: float) -> Tensor:
        mask = keep_mask(x.shape, probability)
        ctx.save_for_backward(mask)
        ctx.scale = 1 / (1 - probability)
        return keep(x, mask).mul_(ctx.scale)

    @staticmethod
    def backward(ctx, grad: Tensor):
        (mask,) = ctx.saved_tensors
        return keep(grad, mask).mul_(ctx.scale), None


class DropoutAdd(Function):
    @staticmethod
    def forward(ctx, residual: Tensor, x: Tensor, probability: float) -> Tensor:
        mask = keep_mask(x.shape, probability)
        ctx.save_for_backward(mask)
        ctx.scale, ctx.dtype = 1 / (1 - probability), x.dtype
        return torch.add(residual, keep(x, mask).to(residual.dtype), alpha=ctx.scale)

    @staticmethod
    def backward(ctx, grad: Tensor):
        (mask,) = ctx.saved_tensors
        return grad, keep(grad.to(ctx.dtype), mask).mul_(ctx.scale), None


class ReluDropout(Function):
    @staticmethod
    def forward(ctx, x: Tensor, probability: float) -> Tensor:
        ctx.scale = 1 / (1 - probability)
        out = keep(x, keep_mask(x.shape, probability)).clamp_min_(0).mul_(ctx.scale)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        # A dropped unit and an inactive one are both zero and both pass no gradient: the mask need not be kept.
        (out,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grad, out, 0).mul_(ctx.scale), None


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero each element with `probability` and scale the others so that the expectation is kept."""
    if not probability:
        return x
    return Dropout.apply(x, probability) if x.device.type == "cpu" else F.dropout(x, probability)


def dropout_add(residual: Tensor, x: Tensor, probability: float) -> Tensor:
    """residual + dropout(x), in the type of `residual`; both of one shape."""
    if not probability:
        return residual + x
    if x.device.type != "cpu":
        return residual + F.dropout(x, probability)
    return DropoutAdd.apply(residual, x, probability)


def relu_dropout(x: Tensor, probability: float) -> Tensor:
    """dropout(max(0, x))"""
    if not probability:
        return F.relu(x)
    return ReluDropout.apply(x, probability) if x.device.type == "cpu" else F.dropout(F.relu(x), probability)

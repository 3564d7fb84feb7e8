"""Dropout whose masks cost little on a CPU.

`torch.nn.functional.dropout` draws one Bernoulli variable after the other, a quarter of a training step on two cores.
Here a counter-based hash gives 16 random bits an element in a few vectorised integer operations, and a mask is applied
by a bitwise AND. A mask's key is drawn from torch's global CPU generator, so `torch.manual_seed` fixes every mask.
Other devices draw masks in parallel already and use torch's own dropout.
"""

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

LEVELS = 1 << 15
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def keep_mask(shape: torch.Size, probability: float) -> Tensor:
    """int16 mask of `shape`: all bits set (-1) where an element is kept, 0 where it is dropped.

    An element is dropped with `probability` rounded to a multiple of 1/32768.
    """
    bits = random_bits(shape.numel())
    bits.bitwise_right_shift_(1).sub_(round(probability * LEVELS) - LEVELS // 2)
    return bits.bitwise_right_shift_(15).bitwise_not_().view(shape)


def random_bits(count: int) -> Tensor:
    """`count` uniform int16 values: a 32-bit mixing hash (Wellons' lowbias32) of a counter, keyed with 64 bits."""
    size = (count + 1) // 2
    first, second = int(torch.randint(-(1 << 31), (1 << 31) - size, ())), int(torch.randint(-(1 << 31), 1 << 31, ()))
    words, scratch = torch.arange(first, first + size, dtype=torch.int32), torch.empty(size, dtype=torch.int32)
    fold(words, 16, scratch).mul_(0x21F0AAAD).bitwise_xor_(second)
    fold(words, 15, scratch).mul_(0x735A2D97)
    return fold(words, 15, scratch).view(torch.int16)[:count]


def fold(words: Tensor, shift: int, scratch: Tensor) -> Tensor:
    """words ^= words >>> shift, in place; int32 shifts copy the sign, which the mask takes away again."""
    torch.bitwise_right_shift(words, shift, out=scratch)
    return words.bitwise_xor_(scratch.bitwise_and_((1 << (32 - shift)) - 1))


def kept_share(probability: float) -> float:
    """The exact probability with which `keep_mask` keeps an element."""
    return 1 - round(probability * LEVELS) / LEVELS


def keep(x: Tensor, mask: Tensor) -> Tensor:
    """`x` where the mask is set, zero elsewhere."""
    integer = INTEGERS[x.element_size()]
    return x.view(integer).bitwise_and(mask.to(integer)).view(x.dtype)


class Dropout(Function):
    @staticmethod
    def forward(ctx, x: Tensor, probability: float) -> Tensor:
        mask = keep_mask(x.shape, probability)
        ctx.save_for_backward(mask)
        ctx.scale = 1 / kept_share(probability)
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
        ctx.scale = 1 / kept_share(probability)
        return torch.add(residual, keep(x, mask), alpha=ctx.scale)

    @staticmethod
    def backward(ctx, grad: Tensor):
        (mask,) = ctx.saved_tensors
        return grad, keep(grad, mask).mul_(ctx.scale), None


class ReluDropout(Function):
    @staticmethod
    def forward(ctx, x: Tensor, probability: float) -> Tensor:
        ctx.scale = 1 / kept_share(probability)
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
    """residual + dropout(x); both of one shape and type."""
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

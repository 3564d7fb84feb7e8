"""Sequences of different lengths in one batch: what is real of them, and reading them backwards.

Dimensions: B sequences, S positions, H features.
"""

from functools import cache

import torch
from torch import Tensor
from torch.autograd import Function


@cache
def numbers_on(device: torch.device, *numbers: int) -> Tensor:
    """int64, copied to the device once: it would have to be waited for."""
    return torch.tensor(numbers, device=device)


def within(lengths: Tensor, width: int) -> Tensor:
    """(B, width) bool, True at the first `lengths` (B,) places."""
    return torch.arange(width, device=lengths.device) < lengths.unsqueeze(1)


def visible(lengths: Tensor, width: int) -> Tensor:
    """(B, width) bool, True where attention may look: within the length, or at the first place if there is none."""
    return within(lengths.clamp_min(1), width)


def zero_behind(x: Tensor, lengths: Tensor) -> Tensor:
    return x.masked_fill(~within(lengths, x.shape[1]).unsqueeze(-1), 0.0)


def reversal(mask: Tensor) -> Tensor:
    """(B, S) bool, True where there is a symbol -> (B, S) places that put each sequence back to front, padding last."""
    places = torch.arange(mask.shape[1], device=mask.device)
    last = mask.sum(1, keepdim=True) - 1
    return torch.where(mask, last - places, places)


class Reversed(Function):
    """Positions taken back to front, whose gradients are taken the same way.

    The places are their own inverse. The backward pass of `gather` does not know that and adds gradients up at sorted
    places, a fifth of a long recogniser's step on a GPU.
    """

    @staticmethod
    def forward(ctx, x: Tensor, places: Tensor) -> Tensor:
        """Take x (B, S, H) at places (B, S) -> (B, S, H)."""
        ctx.save_for_backward(places)
        return x.gather(1, places.unsqueeze(2).expand_as(x))

    @staticmethod
    def backward(ctx, grad: Tensor):
        (places,) = ctx.saved_tensors
        return grad.gather(1, places.unsqueeze(2).expand_as(grad)), None


def reordered(x: Tensor, places: Tensor) -> Tensor:
    """Put position places[b, j] of sequence b at j.

    Args:
        x: Sequences, shape (B, S, H).
        places: From `reversal`, shape (B, S); they have to be their own inverse.
    """
    return Reversed.apply(x, places)

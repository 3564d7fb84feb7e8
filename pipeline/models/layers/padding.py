"""Sequences of different lengths in one batch: masks and reversal.

Dimensions: B sequences, S positions, H features.
"""

from functools import cache

import torch
from torch import Tensor

from pipeline.models import kernels
from pipeline.models.kernels import operators


@cache
def cached_indices(device: torch.device, *indices: int) -> Tensor:
    """Return int64 indices as a tensor on `device`, copied there once.

    A copy in every step would make the host wait.

    Args:
        device: Where the indices are used.
        *indices: Values of the tensor; they also name the cache entry.

    Returns:
        Shape (number of indices,).
    """
    return torch.tensor(indices, device=device)


def length_mask(lengths: Tensor, width: int) -> Tensor:
    """Mark the positions within each sequence.

    Args:
        lengths: Length of each sequence, shape (B,).
        width: Positions of the batch, S.

    Returns:
        Mask (B, S), True at the first `lengths` positions.
    """
    return torch.arange(width, device=lengths.device) < lengths.unsqueeze(1)


def visible_mask(lengths: Tensor, width: int) -> Tensor:
    """Mark the positions that attention may see.

    A sequence of length 0, which only fills up a batch, has its first position visible: softmax needs one.

    Args:
        lengths: Length of each sequence, shape (B,).
        width: Positions of the batch, S.

    Returns:
        Mask (B, S), True at visible positions.
    """
    return length_mask(lengths.clamp_min(1), width)


def zero_padding(x: Tensor, lengths: Tensor) -> Tensor:
    """Set positions behind the end of each sequence to zero.

    Args:
        x: Shape (B, S, H).
        lengths: Length of each sequence, shape (B,).

    Returns:
        Shape (B, S, H).
    """
    return x.masked_fill(~length_mask(lengths, x.shape[1]).unsqueeze(-1), 0.0)


def reversal_indices(mask: Tensor) -> Tensor:
    """Compute indices that reverse each sequence and leave its padding last.

    Args:
        mask: Shape (B, S), True at symbols, False at the padding behind them.

    Returns:
        Indices (B, S), for `gather_positions`; they are their own inverse.
    """
    positions = torch.arange(mask.shape[1], device=mask.device)
    last = mask.sum(1, keepdim=True) - 1
    return torch.where(mask, last - positions, positions)


def gather_positions(x: Tensor, indices: Tensor) -> Tensor:
    """Put position indices[b, j] of sequence b at j.

    Args:
        x: Shape (B, S, H).
        indices: From `reversal_indices`, shape (B, S); they must be their own inverse.

    Returns:
        Shape (B, S, H).
    """
    if kernels.enabled():
        return operators.gather_positions(x, indices)
    return x.gather(1, indices.unsqueeze(2).expand_as(x))

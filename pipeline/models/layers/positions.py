"""Positions of sequences: masks and reversal where lengths differ, and position encodings.

Encodings are sinusoids or learned vectors (Attention Is All You Need, section 3.5 and Table 3, row E).

Dimensions: B sequences, S positions of a batch, H features; T positions, D d_model.
"""

import math
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.core.errors import UserError
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
    """Return a mask (B, `width`), True at the first `lengths` (B,) positions of each sequence."""
    return torch.arange(width, device=lengths.device) < lengths.unsqueeze(1)


def visible_mask(lengths: Tensor, width: int) -> Tensor:
    """Return a mask for attention, as `length_mask`; of an empty sequence it shows the first position."""
    return length_mask(lengths.clamp_min(1), width)


def zero_padding(x: Tensor, lengths: Tensor) -> Tensor:
    """Set positions of `x` (B, S, H) behind the `lengths` (B,) to zero."""
    return x.masked_fill(~length_mask(lengths, x.shape[1]).unsqueeze(-1), 0.0)


def reversal_indices(mask: Tensor) -> Tensor:
    """Return indices (B, S), their own inverse, that reverse the sequences of `mask` (B, S), padding last."""
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


def sinusoids(count: int, d_model: int, device: torch.device | None = None) -> Tensor:
    """Compute sinusoids of the first positions (Attention Is All You Need, section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i/D)) and PE(pos, 2i+1) = cos(pos / 10000^(2i/D)).

    Args:
        count: Number of positions, T.
        d_model: D.
        device: Where the encodings are computed; None is torch's default.

    Returns:
        Encodings of positions 0 … T - 1, shape (T, D).
    """
    positions = torch.arange(count, dtype=torch.float32, device=device).unsqueeze(1)
    steps = torch.arange(0, d_model, 2, dtype=torch.float32, device=device)
    angles = positions * torch.exp(steps * (-math.log(10000.0) / d_model))
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :d_model]


class SinusoidPositions(nn.Module):
    """Sinusoids of any position; the table grows on demand."""

    table: Tensor

    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table", sinusoids(256, d_model), persistent=False)

    def forward(self, first: int, last: int) -> Tensor:
        """Return the encodings of positions `first` … `last` - 1, shape (`last` - `first`, D)."""
        self.reserve(last)
        return self.table[first:last]

    def reserve(self, last: int) -> None:
        """Grow the table so that `at` can read the positions below `last`."""
        if last > self.table.shape[0]:
            with torch.inference_mode(False):  # the table outlives the block that first needs it
                self.table = sinusoids(2 * last, self.d_model, self.table.device)

    def at(self, positions: Tensor) -> Tensor:
        """Return the encodings (…, D) of reserved `positions` (…,) that only the device knows."""
        return F.embedding(positions, self.table)


class LearnedPositions(nn.Module):
    """One trainable vector per position.

    Args:
        max_positions: Rows of the table.
        width: D.
        std: Standard deviation of the initial vectors, which are drawn from N(0, std²).
        scale: Factor on the vectors in the forward pass.
    """

    def __init__(self, max_positions: int, width: int, std: float, scale: float = 1.0):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_positions, width).normal_(std=std))
        self.scale = scale

    def forward(self, first: int, last: int) -> Tensor:
        """Return the vectors of positions first … last - 1.

        Args:
            first: First position, counted from 0.
            last: Position after the last one.

        Returns:
            Shape (last - first, D).

        Raises:
            UserError: The table has no vector for a position.
        """
        if last > len(self.table):
            raise UserError(
                f"a sequence reaches position {last}, the learned position table has {len(self.table)}; "
                "raise model.max_positions or lower training.max_length"
            )
        return self.table[first:last] * self.scale

    def reserve(self, last: int) -> None:
        """Do nothing: the table has a fixed size, which bounds the length of an output."""

    def at(self, positions: Tensor) -> Tensor:
        """Return the vectors (…, D) of `positions` (…,) that only the device knows."""
        return F.embedding(positions, self.table) * self.scale

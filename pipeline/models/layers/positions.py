"""Position encodings: sinusoids or learned vectors (Attention Is All You Need, section 3.5 and Table 3, row E).

Dimensions: T positions, D d_model.
"""

import math

import torch
from torch import Tensor, nn

from pipeline.core.errors import UserError


def sinusoids(first: int, last: int, d_model: int, device: torch.device | None = None) -> Tensor:
    """Compute sinusoids of positions (Attention Is All You Need, section 3.5).

    PE(pos, 2i) = sin(pos / 10000^(2i/D)) and PE(pos, 2i+1) = cos(pos / 10000^(2i/D)).

    Args:
        first: First position, counted from 0.
        last: Position after the last one.
        d_model: D.
        device: Where the encodings are computed; None is torch's default.

    Returns:
        Encodings of positions first … last - 1, shape (last - first, D).
    """
    positions = torch.arange(first, last, dtype=torch.float32, device=device).unsqueeze(1)
    steps = torch.arange(0, d_model, 2, dtype=torch.float32, device=device)
    angles = positions * torch.exp(steps * (-math.log(10000.0) / d_model))
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :d_model]


class SinusoidPositions(nn.Module):
    """Sinusoids of any position; the table grows on demand."""

    table: Tensor

    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = d_model
        self.register_buffer("table", sinusoids(0, 256, d_model), persistent=False)

    def forward(self, first: int, last: int) -> Tensor:
        """Return the encodings of positions first … last - 1.

        Args:
            first: First position, counted from 0.
            last: Position after the last one.

        Returns:
            Shape (last - first, D).
        """
        if last > self.table.shape[0]:
            self.table = sinusoids(0, 2 * last, self.d_model, self.table.device)
        return self.table[first:last]


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

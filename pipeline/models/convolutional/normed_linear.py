"""A linear map whose rows have a length of their own (weight normalisation, Salimans & Kingma 2016)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class NormedLinear(nn.Module):
    """Rows g_i v_i / |v_i|. v is drawn from N(0, gain² / width_in), and g so that the rows are v at first; bias zero
    (Convolutional Sequence to Sequence Learning, section 3.5: `gain` holds what dropout and gating ask for)."""

    def __init__(self, width_in: int, width_out: int, gain: float):
        super().__init__()
        self.direction = nn.Parameter(torch.empty(width_out, width_in).normal_(std=gain / math.sqrt(width_in)))
        self.length = nn.Parameter(self.direction.detach().norm(dim=1))
        self.bias = nn.Parameter(torch.zeros(width_out))

    @property
    def weight(self) -> Tensor:
        """(out, in)"""
        return torch._weight_norm(self.direction, self.length.unsqueeze(1), 0)

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) -> (…, out)"""
        return F.linear(x, self.weight, self.bias)

"""Blending two channels of a source position by a gate (Multi-channel Encoder, section 3.2).

    z = sigmoid(W a + U b + b_z)
    gate:  z * (P a) + (1 - z) * (Q b)
    gru:   (1 - z) * a + z * tanh(P a + Q b)

The paper's formulas are lost; its parameter counts ask for two matrices a channel and one bias. The first form treats
both channels alike, the second is closer to the gated recurrent unit that the paper names as its motive.

Dimensions: B sentences, S source positions, D width of an annotation.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Blend(nn.Module):
    """of_first (2D, first) = W over P, of_second (2D, second) = U over Q, bias (D,)."""

    def __init__(self, first: int, second: int, width: int, form: Literal["gate", "gru"]):
        super().__init__()
        self.form = form
        self.of_first = nn.Parameter(torch.empty(2 * width, first))
        self.of_second = nn.Parameter(torch.empty(2 * width, second))
        self.bias = nn.Parameter(torch.empty(width))

    def forward(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """first (B, S, D or, in the form gate, any width), second (B, S, any width) -> blended, and z (B, S, D)"""
        under_gate, projected = F.linear(first, self.of_first).chunk(2, dim=-1)
        under_gate_too, projected_too = F.linear(second, self.of_second).chunk(2, dim=-1)
        z = torch.sigmoid(under_gate + under_gate_too + self.bias)
        if self.form == "gate":
            return torch.lerp(projected_too.to(z.dtype), projected.to(z.dtype), z), z
        return torch.lerp(first.to(z.dtype), torch.tanh(projected + projected_too).to(z.dtype), z), z

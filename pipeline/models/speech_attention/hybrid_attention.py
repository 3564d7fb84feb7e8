"""Attention that sees both what is at a position and where it looked before (Chorowski et al. 2015, eq. 5 to 9).

Dimensions: B utterances, K hypotheses, S positions, E annotation width, D decoder width, A attention width, k filters
of width r.
"""

from typing import TypedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Annotations(TypedDict):
    """What the attention reads of one batch, made once."""

    values: Tensor
    """h (B, S, E)"""
    keys: Tensor
    """2 (V h + b), (B, S, A)"""
    mask: Tensor
    """(B, S) bool, True where there is something to look at"""


class HybridAttention(nn.Module):
    """e_{t,j} = w^T tanh(W d_{t-1} + V h_j + U f_{t,j} + b) with f_t = F * α_{t-1}; α_t = softmax(e_t), c_t = α_t h.

    The filters F and the projection U are applied as one product, since nothing lies between them. In the place of
    w^T tanh(u) stands 2 w^T sigmoid(2 u): it differs by a constant, which the softmax does not feel, and is faster.
    """

    def __init__(self, annotation_width: int, state_width: int, width: int, filters: int, filter_width: int):
        super().__init__()
        self.reach = filter_width // 2
        self.of_state = nn.Linear(state_width, width, bias=False)
        self.of_annotation = nn.Linear(annotation_width, width)
        self.filters = nn.Parameter(torch.empty(filters, 2 * self.reach + 1))
        self.of_location = nn.Linear(filters, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        nn.init.normal_(self.filters, std=(2 * self.reach + 1) ** -0.5)

    def prepare(self, values: Tensor, mask: Tensor) -> Annotations:
        return {"values": values, "keys": 2 * self.of_annotation(values), "mask": mask}

    def begin(self, values: Tensor) -> Tensor:
        """α_0 (B, K = 1, S): all weight on the first position, where speech begins."""
        alignment = values.new_zeros(len(values), 1, values.shape[1])
        alignment[..., 0] = 1.0
        return alignment

    def forward(self, state: Tensor, alignment: Tensor, source: Annotations) -> tuple[Tensor, Tensor]:
        """state d_{t-1} (B, K, D), alignment α_{t-1} (B, K, S) -> context c_t (B, K, E), α_t (B, K, S)."""
        neighbourhood = F.pad(alignment, (self.reach, self.reach)).unfold(-1, 2 * self.reach + 1, 1)
        location = neighbourhood @ (2 * self.of_location.weight @ self.filters).t()
        state_part = F.linear(state, 2 * self.of_state.weight)
        compared = torch.sigmoid(location + source["keys"].unsqueeze(1) + state_part.unsqueeze(2))
        energies = 2 * self.score(compared).squeeze(-1)
        energies = energies.masked_fill(~source["mask"].unsqueeze(1), -torch.inf)
        alignment = energies.float().softmax(-1)
        return alignment.to(source["values"].dtype) @ source["values"], alignment

"""Euclidean projection onto the probability simplex (Chen & Ye 2011), for the weights of the Weighted Transformer."""

import torch
from torch import Tensor


def project_to_simplex(points: Tensor) -> Tensor:
    """The nearest point of the simplex {w >= 0, sum w = 1} to each row.

    points: (…, M). With u sorted in descending order, rho = max{j : u_j - (sum_{r<=j} u_r - 1) / j > 0},
    theta = (sum_{r<=rho} u_r - 1) / rho, w = max(u - theta, 0).
    """
    points = points - points.amax(dim=-1, keepdim=True)  # the same nearest point, with less rounding
    ordered = points.sort(dim=-1, descending=True).values
    excess = running_sums(ordered) - 1
    ranks = torch.arange(1, points.shape[-1] + 1, dtype=points.dtype, device=points.device)
    rho = (ordered - excess / ranks > 0).sum(dim=-1, keepdim=True)
    theta = excess.gather(-1, rho - 1) / rho
    return (points - theta).clamp_min(0)


def running_sums(x: Tensor) -> Tensor:
    """(…, M) -> (…, M). On a GPU torch's own add up in no fixed order."""
    if not x.is_cuda:
        return x.cumsum(dim=-1)
    return (x.unsqueeze(-1) * torch.ones(x.shape[-1], x.shape[-1], dtype=x.dtype, device=x.device).triu()).sum(dim=-2)

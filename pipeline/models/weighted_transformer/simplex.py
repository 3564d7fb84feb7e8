"""Branch weights as points of the simplex {w >= 0, sum w = 1}.

Dimensions: M branches.
"""

import torch
from torch import Tensor


def random_weights(
    branches: int, generator: torch.Generator | None = None, device: torch.device | None = None
) -> Tensor:
    """Draw M values from U(0, 1) and divide them by their sum.

    Args:
        branches: M.
        generator: Source of random numbers; None is torch's global generator.
        device: Device of the values; None is torch's default.

    Returns:
        Shape (M,), a point of the simplex.
    """
    draws = torch.rand(branches, generator=generator, device=device)
    return draws / draws.sum()


def keep_largest(weights: Tensor, top_k: int | None) -> Tensor:
    """Set all but the `top_k` largest `weights` (M,) to zero without rescaling the others; None keeps all."""
    if top_k is None:
        return weights
    return weights * torch.zeros_like(weights).scatter(0, weights.topk(top_k).indices, 1.0)


def project_to_simplex(points: Tensor) -> Tensor:
    """Project each row onto the simplex {w >= 0, sum w = 1} (Chen & Ye 2011).

    With u sorted in descending order:

        rho   = max{j : u_j - (sum_{r<=j} u_r - 1) / j > 0}
        theta = (sum_{r<=rho} u_r - 1) / rho
        w     = max(u - theta, 0)

    Args:
        points: Shape (…, M).

    Returns:
        Nearest point of the simplex to each row, shape (…, M).
    """
    points = points - points.amax(dim=-1, keepdim=True)  # same projection, smaller rounding errors
    ordered = points.sort(dim=-1, descending=True).values
    excess = running_sums(ordered) - 1
    ranks = torch.arange(1, points.shape[-1] + 1, dtype=points.dtype, device=points.device)
    rho = (ordered - excess / ranks > 0).sum(dim=-1, keepdim=True)
    theta = excess.gather(-1, rho - 1) / rho
    return (points - theta).clamp_min(0)


def running_sums(x: Tensor) -> Tensor:
    """Return the cumulative sums (…, M) of the last dimension of `x` (…, M), deterministically on a GPU too."""
    if not x.is_cuda:
        return x.cumsum(dim=-1)
    return (x.unsqueeze(-1) * torch.ones(x.shape[-1], x.shape[-1], dtype=x.dtype, device=x.device).triu()).sum(dim=-2)

"""Dropout, alone and fused with its neighbours."""

from torch import Tensor
from torch.nn import functional as F

from pipeline.models import kernels
from pipeline.models.kernels import dropout as kernel


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero each element with `probability` and scale the others by 1 / (1 - probability).

    Args:
        x: Tensor of any shape.
        probability: In [0, 1); 0 returns `x` itself.

    Returns:
        Tensor of the shape of `x`.
    """
    if not probability:
        return x
    return kernel.dropout(x, probability) if kernels.enabled_on_cpu(x) else F.dropout(x, probability)


def dropout_add(residual: Tensor, x: Tensor, probability: float) -> Tensor:
    """Compute residual + dropout(x).

    Args:
        residual: Broadcastable to the shape of `x`; gives the dtype of the result.
        x: Tensor of any shape.
        probability: Probability of dropping an element of `x`, in [0, 1).

    Returns:
        Tensor of the shape of `x`.
    """
    if not probability:
        return residual + x
    if kernels.enabled_on_cpu(x):
        return kernel.dropout_add(residual, x, probability)
    return residual + F.dropout(x, probability)


def relu_dropout(x: Tensor, probability: float) -> Tensor:
    """Compute dropout(max(0, x)).

    Args:
        x: Tensor of any shape.
        probability: Probability of dropping an element, in [0, 1).

    Returns:
        Tensor of the shape of `x`.
    """
    if not probability:
        return F.relu(x)
    return kernel.relu_dropout(x, probability) if kernels.enabled_on_cpu(x) else F.dropout(F.relu(x), probability)

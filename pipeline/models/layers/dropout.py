"""Dropout, alone and fused with its neighbours."""

from torch import Tensor
from torch.nn import functional as F

from pipeline.models import kernels
from pipeline.models.kernels import dropout as kernel


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero each element with `probability` and scale the others by 1 / (1 - probability)."""
    if not probability:
        return x
    return kernel.dropout(x, probability) if kernels.enabled_on_cpu(x) else F.dropout(x, probability)


def dropout_add(residual: Tensor, x: Tensor, probability: float) -> Tensor:
    """Return residual + dropout(x), both of one shape, in the dtype of `residual`."""
    if not probability:
        return residual + x
    if kernels.enabled_on_cpu(x):
        return kernel.dropout_add(residual, x, probability)
    return residual + F.dropout(x, probability)


def relu_dropout(x: Tensor, probability: float) -> Tensor:
    """Return dropout(max(0, x))."""
    if not probability:
        return F.relu(x)
    return kernel.relu_dropout(x, probability) if kernels.enabled_on_cpu(x) else F.dropout(F.relu(x), probability)

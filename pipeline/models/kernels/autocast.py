"""Layers that run wholly in the dtype of autocast on a GPU, with few casts.

Activations between sub-layers are not cast back and forth. Weights of neighbouring layers are cast together: two kernel
launches instead of two for each weight. In decoding the casts are cached.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.weak import WeakTensorKeyDictionary

CastWeights = tuple[Tensor, Tensor | None]
"""Weight and bias of a module in the dtype of autocast."""

_CACHE = WeakTensorKeyDictionary()
"""First weight of a list -> the state of the list when it was cast, and the casts."""


class Projection(nn.Linear):
    """A linear map that accepts pre-cast weights."""

    cast_weights: CastWeights | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Map the last dimension of `x` (…, in) to (…, out), by the cast weights if there are any."""
        weight, bias = self.cast_weights or (self.weight, self.bias)
        return F.linear(x, weight, bias)


class Norm(nn.LayerNorm):
    """LayerNorm that accepts pre-cast weights; reductions stay in float32."""

    cast_weights: CastWeights | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension of `x` (…, width), with the cast weights if there are any."""
        if self.cast_weights is None:
            return super().forward(x)
        with torch.autocast("cuda", enabled=False):
            return F.layer_norm(x, self.normalized_shape, *self.cast_weights, self.eps)


class _CastFunction(torch.autograd.Function):
    """Cast a list of tensors by one operator in each direction."""

    @staticmethod
    def forward(ctx, dtype: torch.dtype, *wide: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        return cast_together(dtype, wide)

    @staticmethod
    def backward(ctx, *grads: Tensor | None):
        wide = iter(cast_together(torch.float32, [grad for grad in grads if grad is not None]))
        return None, *(None if grad is None else next(wide) for grad in grads)


def cast_together(dtype: torch.dtype, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Copy `tensors` of any shapes (…) to a `dtype` by one operator."""
    copies = tuple(torch.empty_like(tensor, dtype=dtype) for tensor in tensors)
    torch._foreach_copy_(copies, tuple(tensors))
    return copies


def cached_casts(dtype: torch.dtype, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Cast weights; without gradients, only if one of them changed since the last call.

    Args:
        dtype: Dtype of the casts.
        weights: Parameters of any shape; the first one names the cache entry.

    Returns:
        Casts, in the order and shapes of `weights`; with gradients enabled, differentiable ones.
    """
    if torch.is_grad_enabled():
        # An optimiser step follows, and torch's fused optimisers do not change `_version`.
        _CACHE.pop(weights[0], None)
        return _CastFunction.apply(dtype, *weights)
    state, found = (dtype, [weight._version for weight in weights]), _CACHE.get(weights[0])
    if found is None or found[0] != state:
        _CACHE[weights[0]] = found = state, cast_together(dtype, weights)
    return found[1]


def casts_of(weights: Iterable[Tensor]) -> list[Tensor]:
    """Return all cached casts whose cache entries are named by one of `weights`."""
    entries = [_CACHE.get(weight) for weight in weights]
    return [cast for entry in entries if entry is not None for cast in entry[1]]


def forget_casts() -> None:
    """Drop all cached casts, because weights changed in a way that torch does not count, as by a CUDA graph."""
    _CACHE.clear()


@contextlib.contextmanager
def autocast_layers(layers: Sequence[nn.Module], x: Tensor) -> Iterator[Tensor]:
    """Let `layers` compute in the dtype of autocast inside the block.

    Do nothing on a CPU or without autocast.

    Args:
        layers: Modules whose `Projection` and `Norm` layers get cast weights.
        x: Input of the layers, of any shape.

    Yields:
        The input in that dtype.
    """
    if not x.is_cuda or not torch.is_autocast_enabled("cuda"):
        yield x
        return
    dtype = torch.get_autocast_dtype("cuda")
    modules = [module for layer in layers for module in layer.modules() if isinstance(module, Projection | Norm)]
    owners = [(module, name) for module in modules for name in ("weight", "bias") if getattr(module, name) is not None]
    weights = [getattr(module, name) for module, name in owners]
    casts = dict(zip(owners, cached_casts(dtype, weights), strict=True))
    for module in modules:
        module.cast_weights = casts[module, "weight"], casts.get((module, "bias"))
    try:
        yield x.to(dtype)
    finally:
        for module in modules:
            module.cast_weights = None

"""Layers wholly in autocast's type, on a GPU: what lies between sub-layers is not cast to and fro, and weights of
neighbouring layers are cast together, two launches in the place of two for each of them; in decoding, once."""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F
from torch.utils.weak import WeakTensorKeyDictionary

Narrow = tuple[Tensor, Tensor | None]
"""A module's weight and bias, cast."""

CASTS = WeakTensorKeyDictionary()
"""By the first of some weights, of which state they are, and their casts."""


class Projection(nn.Linear):
    """A linear map whose weights may have been cast already."""

    narrow: Narrow | None = None

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.narrow or (self.weight, self.bias)
        return F.linear(x, weight, bias)


class Norm(nn.LayerNorm):
    """Layer normalisation, of whose input and output the same is true; its sums are in float32 anyway."""

    narrow: Narrow | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.narrow is None:
            return super().forward(x)
        with torch.autocast("cuda", enabled=False):
            return F.layer_norm(x, self.normalized_shape, *self.narrow, self.eps)


class Cast(Function):
    """Tensors in the type `kind`, by one operator each way."""

    @staticmethod
    def forward(ctx, kind: torch.dtype, *wide: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        return cast(kind, wide)

    @staticmethod
    def backward(ctx, *grads: Tensor | None):
        cast_back = iter(cast(torch.float32, [grad for grad in grads if grad is not None]))
        return None, *(None if grad is None else next(cast_back) for grad in grads)


def cast(kind: torch.dtype, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    copies = tuple(torch.empty_like(tensor, dtype=kind) for tensor in tensors)
    torch._foreach_copy_(copies, tuple(tensors))
    return copies


def casts(kind: torch.dtype, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Weights in the type `kind`; where no gradient is asked for, cast anew only when one was changed."""
    if torch.is_grad_enabled():
        CASTS.pop(weights[0], None)  # an update follows, and torch's fused ones leave `_version` as it is
        return Cast.apply(kind, *weights)
    state, found = (kind, [weight._version for weight in weights]), CASTS.get(weights[0])
    if found is None or found[0] != state:
        CASTS[weights[0]] = found = state, cast(kind, weights)
    return found[1]


@contextlib.contextmanager
def narrowed(layers: Sequence[nn.Module], x: Tensor) -> Iterator[Tensor]:
    """Within it `layers` compute in autocast's type; yields their input in that type. Changes nothing elsewhere."""
    if not x.is_cuda or not torch.is_autocast_enabled("cuda"):
        yield x
        return
    kind = torch.get_autocast_dtype("cuda")
    found = [module for layer in layers for module in layer.modules() if isinstance(module, Projection | Norm)]
    given = [(module, name) for module in found for name in ("weight", "bias") if getattr(module, name) is not None]
    weights = [getattr(module, name) for module, name in given]
    done = dict(zip(given, casts(kind, weights), strict=True))
    for module in found:
        module.narrow = done[module, "weight"], done.get((module, "bias"))
    try:
        yield x.to(kind)
    finally:
        for module in found:
            module.narrow = None

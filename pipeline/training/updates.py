"""An update on its way through a trainer: composed ahead, computed, and its numbers read when they are there."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pipeline.data.batches.corpus_batches import AnyBatch


@dataclass(frozen=True)
class Update:
    """The micro-batches of this process, and what is known of all without them.

    Attributes:
        tokens, sentences: of the update over all processes; flops: of this one.
    """

    parts: list[AnyBatch]
    tokens: int
    sentences: int
    flops: float


class Numbers:
    """A few numbers of a device. Their copy to the host begins at once; who reads them waits for it.

    Args:
        values: On the device; may be overwritten by what is queued from now on.
        known: Numbers that the host has already; they come before the last of `values`.
    """

    def __init__(self, values: Tensor, known: Sequence[float] = ()):
        self.copied, self.known = None, known
        if values.is_cuda:
            self.host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            self.host.copy_(values, non_blocking=True)
            self.copied = torch.Event(values.device)
            self.copied.record()
        else:
            self.host = values.clone()

    @cached_property
    def values(self) -> list[float]:
        if self.copied:
            self.copied.synchronize()
        *first, last = self.host.tolist()
        return [*first, *self.known, last]


def not_finite(one: Tensor, other: Tensor) -> Tensor:
    """1.0 where one of two numbers is not finite, else 0.0; nobody waits for it."""
    both = one + other
    return (both - both).ne(0).float()

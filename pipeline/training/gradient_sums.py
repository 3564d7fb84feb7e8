"""Gradients added up over processes while the backward pass that computes them goes on."""

from collections.abc import Sequence
from itertools import chain

import torch
import torch.distributed
from torch import Tensor, nn

BUCKET_BYTES = 25 << 20
"""Of gradients that are exchanged at once: enough for a network to be at its full speed."""


class GradientSums:
    """Replaces every gradient by its sum over all processes, a missing one counting as zero.

    Gradients are exchanged in buckets, in the order in which a backward pass has them: that of the parameters from the
    last to the first. All processes send the same buckets in the same order, whatever order their gradients come in.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], processes: int):
        self.buckets = buckets(parameters[::-1]) if processes > 1 else []
        self.bucket_of = {id(parameter): number for number, bucket in enumerate(self.buckets) for parameter in bucket}
        self.missing: list[int] | None = None
        """Gradients of each bucket that are still to come; None while none may be sent."""
        self.sent: list[tuple[Tensor, torch.distributed.Work]] = []
        for parameter in chain(*self.buckets):
            parameter.register_post_accumulate_grad_hook(self.arrived)

    def last_pass(self) -> None:
        """What the next backward pass adds to is complete then: it may be sent."""
        self.missing = [len(bucket) for bucket in self.buckets]

    def arrived(self, parameter: Tensor) -> None:
        """A gradient is there."""
        if self.missing is None:
            return
        self.missing[self.bucket_of[id(parameter)]] -= 1
        while len(self.sent) < len(self.buckets) and not self.missing[len(self.sent)]:
            self.send()

    def send(self) -> None:
        bucket = self.buckets[len(self.sent)]
        found = [torch.zeros_like(one) if one.grad is None else one.grad for one in bucket]
        flat = torch.cat([gradient.reshape(-1) for gradient in found])
        self.sent.append((flat, torch.distributed.all_reduce(flat, async_op=True)))

    def finish(self) -> None:
        """Send what is left, and have the sums."""
        while len(self.sent) < len(self.buckets):
            self.send()
        for bucket, (flat, work) in zip(self.buckets, self.sent, strict=True):
            work.wait()
            for parameter, summed in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                parameter.grad = summed.view_as(parameter)
        self.missing, self.sent = None, []


def buckets(parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Neighbours together, up to `BUCKET_BYTES` or one."""
    found: list[list[nn.Parameter]] = []
    room = 0
    for parameter in parameters:
        if parameter.nbytes > room:
            found.append([])
            room = BUCKET_BYTES
        found[-1].append(parameter)
        room -= parameter.nbytes
    return found

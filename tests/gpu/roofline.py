"""How long a GPU would need for what was counted: an estimate from data sheets and from others' measurements, until one
is measured. Nothing else in the tests knows a figure of a GPU."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """What a kernel can't be faster than."""

    peak: float
    """Dense products in bfloat16, operations a second, of the data sheet."""
    products: float
    """The same that large matrix products reach."""
    memory: float
    """Bytes a second."""
    kernel_s: float
    """Least time of a kernel."""


CARDS = {
    "H100": Card(989e12, 600e12, 2.6e12, 3.0e-6),
    "A100": Card(312e12, 230e12, 1.5e12, 3.5e-6),
}
ISSUE_S = 13.7e-6
"""What the host needs for a launch, eager: where this is longer than kernels take, the device waits for the host."""


def device_seconds(kernels: Iterable[tuple[int, float]], card: Card) -> float:
    """kernels: bytes moved and operations of matrix products of each."""
    return sum(max(moved / card.memory, flops / card.products, card.kernel_s) for moved, flops in kernels)


def update_seconds(kernels: list[tuple[int, float]], card: Card) -> float:
    """The device's time or the host's, whichever is longer."""
    return max(device_seconds(kernels, card), len(kernels) * ISSUE_S)

"""Time that a GPU would need for counted work, from the rates of large kernels (workflow/devices.yaml)."""

from collections.abc import Iterable
from pathlib import Path

from pipeline.planning.devices import HOST_LAUNCH_S, Roofline, load_devices

DEVICES = load_devices(Path(__file__).parents[2] / "workflow/devices.yaml")
CARDS = {name: device.roofline for name, device in DEVICES.items() if device.roofline}


def device_seconds(kernels: Iterable[tuple[int, float]], card: Roofline) -> float:
    """kernels: bytes moved and FLOPs of matmuls of each."""
    return sum(max(moved / card.bandwidth, flops / card.products, card.kernel_s) for moved, flops in kernels)


def update_seconds(kernels: list[tuple[int, float]], card: Roofline) -> float:
    """The device's time or that of the host, eager, whichever is longer: the device waits for the host then."""
    return max(device_seconds(kernels, card), len(kernels) * HOST_LAUNCH_S)

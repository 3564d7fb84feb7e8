"""What GPUs can do: the records of `workflow/devices.yaml`."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from pipeline.cluster.site import gres_of
from pipeline.cluster.version import PROJECT
from pipeline.core.errors import UserError
from pipeline.core.schema import Closed, Positive, load_yaml, validate

Share = Annotated[float, Field(gt=0, le=1, strict=False)]


class Utilisation(Closed):
    """Share of the peak that a training reaches."""

    fp32: Share = Field(description="Of trainings in single precision")
    bf16: Share = Field(description="Of trainings in bfloat16")


class Roofline(Closed):
    """What large kernels reach."""

    products: Positive = Field(description="Products in bfloat16, operations a second")
    bandwidth: Positive = Field(description="Bytes a second")
    kernel_s: Positive = Field(description="Least time of a kernel, seconds")


class Device(Closed):
    """One kind of GPU."""

    fp32: Positive = Field(description="Peak of products in single precision, operations a second")
    bf16: Positive | None = Field(description="The same in bfloat16; null = it has none, and single precision is used")
    utilisation: Utilisation = Field(description="Share of the peak that a training reaches")
    roofline: Roofline | None = Field(default=None, description="To price trainings in bfloat16; null = by utilisation")

    def rate(self, precision: str) -> float:
        """Operations a second of a training."""
        if precision == "bf16" and self.bf16 is not None:
            return self.bf16 * self.utilisation.bf16
        return self.fp32 * self.utilisation.fp32


Devices = dict[str, Device]
"""By name, a part of what the system calls them: `A100` of `NVIDIA A100-SXM4-80GB`."""


def load_devices(path: Path) -> Devices:
    """Devices by name. Raises UserError on unknown keys or bad values."""
    return validate(Devices, load_yaml(path), str(path))


def require_bfloat16(where: str, precision: str, sbatch: str) -> None:
    """Raises UserError when a training wants bfloat16, which the GPUs that `sbatch` asks for are known not to have."""
    card, devices = gres_of(sbatch)[0], load_devices(PROJECT / "workflow/devices.yaml")
    known = (name for name, device in devices.items() if device.bf16 is None and name.lower() in card.lower())
    if precision == "bf16" and (name := next(known, None)):
        raise UserError(
            f"{where}: its precision is bf16, which a {name} (--gres=gpu:{card}) does not have; name other cards in "
            "slurm/site.yaml, or set precision to fp32, and say why, under `training:` of workflow/scales/paper.yaml"
        )

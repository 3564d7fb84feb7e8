"""GPU properties (`workflow/devices.yaml`), and the time of a training step on a GPU.

A step takes as long as its matrix multiplications and memory traffic, or as launching its kernels if that takes longer.
In a CUDA graph, launches for each position add to the longer of the two. Launches dominate in models that step through
positions one by one. tests/gpu counts them. docs/measured/gpu.md compares the times with measured ones.
"""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field

from pipeline.cluster.resources import gres_of
from pipeline.config import RunSpec
from pipeline.core.errors import UserError
from pipeline.core.provenance import ROOT
from pipeline.core.schema import Closed, Positive, load_yaml_as

if TYPE_CHECKING:  # imports numpy, which the Snakefile does not need
    from pipeline.planning.corpus_size import StepShape

Share = Annotated[float, Field(gt=0, le=1, strict=False)]


class Utilisation(Closed):
    """Fraction of the peak that a training reaches."""

    fp32: Share = Field(description="Fraction in single precision")
    bf16: Share = Field(description="Fraction in bfloat16")


class Roofline(Closed):
    """Throughput of large kernels."""

    products: Positive = Field(description="Throughput of matrix multiplications in bfloat16, FLOP/s")
    bandwidth: Positive = Field(description="Memory bandwidth, bytes per second")
    kernel_s: Positive = Field(description="Shortest time of a kernel, seconds")


class Device(Closed):
    """A kind of GPU."""

    fp32: Positive = Field(description="Peak of matrix multiplications in single precision, FLOP/s")
    bf16: Positive | None = Field(description="Peak in bfloat16, FLOP/s; null = not supported, use single precision")
    utilisation: Utilisation = Field(description="Fraction of the peak that a training reaches")
    roofline: Roofline | None = Field(
        default=None, description="Throughput that forecasts use for trainings in bfloat16; null = use utilisation"
    )

    def rate(self, precision: str) -> float:
        """Return the FLOP/s of a training."""
        if precision == "bf16" and self.bf16 is not None:
            return self.bf16 * self.utilisation.bf16
        return self.fp32 * self.utilisation.fp32


Devices = dict[str, Device]
"""Devices by name; see `is_device`."""


def is_device(name: str, reported: str) -> bool:
    """Return whether CUDA's `reported` name is of device `name`.

    `A100` matches `NVIDIA A100-SXM4-80GB`, not `NVIDIA RTX A1000`.
    """
    return re.search(rf"{re.escape(name)}(?!\d)", reported) is not None


def load_devices(path: Path) -> Devices:
    """Return the devices by name.

    Raises:
        UserError: A key or value is wrong.
    """
    return load_yaml_as(Devices, path)


@cache
def devices_without_bfloat16() -> list[str]:
    """Return the names of the workflow's devices without bfloat16, read once for all trainings."""
    devices = load_devices(ROOT / "workflow/devices.yaml")
    return [name for name, device in devices.items() if device.bf16 is None]


def require_bfloat16(where: str, precision: str, sbatch: str) -> None:
    """Check that GPUs requested by `sbatch` have bfloat16 if the training `where` has a `precision` that needs it.

    Raises:
        UserError: The GPUs are known not to have bfloat16.
    """
    requested = gres_of(sbatch)[0]
    known = (name for name in devices_without_bfloat16() if name.lower() in requested.lower())
    if precision == "bf16" and (name := next(known, None)):
        raise UserError(
            f"{where}: its precision is bf16, which a {name} (--gres=gpu:{requested}) does not have; request other "
            "GPUs in slurm/site.yaml, or set precision to fp32 under `training:` in workflow/scales/paper.yaml"
        )


HOST_LAUNCH_S = 44e-6
"""Host seconds per counted launch without CUDA graphs.

Median of fifteen trainings (26 to 70 µs) on an H100 of a virtual machine (docs/measured/gpu-launches.md).
"""
GRAPH_LAUNCH_S = 5.8e-6
"""GPU seconds per counted launch in a CUDA graph.

Median of six trainings of small kernels on an H100 (5.1 to 6.9 µs; docs/measured/gpu.md).
"""
PARAMETER_BYTES = 45.0
"""Bytes that a micro-batch moves for each parameter: casts of weights, and sums of gradients."""
STEP_BYTES = {"adam": 28.0, "adadelta": 28.0, "nag": 20.0}
"""Bytes that an optimiser step moves for each parameter: weights, gradients and moments, in one kernel."""
TRITON_MOVED = {"transformer": 1.0, "weighted_transformer": 2.2}
"""`LaunchCounts.moved` with this project's Triton kernels, fitted to six trainings (docs/measured/gpu.md)."""


class LaunchCounts(NamedTuple):
    """Kernel launches and memory traffic of a micro-batch.

    Attributes:
        always: Launches of every micro-batch.
        source: Launches for each position of the longest source.
        target: Launches for each position of the longest target.
        moved: Bytes moved outside matrix multiplications, per FLOP, times the width of the model. Recognisers have
            parts of several widths, so theirs is not multiplied.
    """

    always: float
    source: float = 0
    target: float = 0
    moved: float = 0


COUNTED = {
    "transformer": LaunchCounts(600, moved=2),
    "transformer with fusion": LaunchCounts(620, target=3, moved=7),
    "weighted_transformer": LaunchCounts(1080, moved=4.3),
    "convolutional": LaunchCounts(1510, moved=3.6),
    "recurrent": LaunchCounts(285, source=6, target=25, moved=8.6),
    "recurrent with memory": LaunchCounts(450, source=92, target=25, moved=5.4),
    "language_model": LaunchCounts(110, target=9, moved=0.7),
    "ctc": LaunchCounts(530, source=15, moved=0.0048),
    "speech_attention": LaunchCounts(390, source=15, target=32, moved=0.0044),
    "speech_attention with fusion": LaunchCounts(420, source=15, target=45, moved=0.0043),
    "joint_recogniser": LaunchCounts(370, source=3, moved=0.004),
}
NO_LAUNCHES = LaunchCounts(0)
"""An architecture that was not counted; its time is that of matrix multiplications and weights alone."""


def step_seconds(
    spec: RunSpec, step: "StepShape", parameters: int, flops: float, device: Device, triton: bool
) -> float:
    """Return the seconds of a training step on one GPU, from the times of computing and of launching.

    Without CUDA graphs the longer of the two counts. In a graph, the small kernels of each position run one after the
    other, so their launches add to the longer of computing and the other launches.

    Args:
        spec: The run.
        step: Shape of the mean step.
        parameters: Number of parameters.
        flops: FLOPs of the step.
        device: The GPU.
        triton: Transformers compute by this project's Triton kernels.
    """
    computing, count = device_seconds(spec, step, parameters, flops, device, triton), micro_batches(spec, step)
    every = count * launches(spec, step.src_length, step.tgt_length)
    if not spec.training.cuda_graphs:
        return max(computing, HOST_LAUNCH_S * every)
    always = count * launch_counts(spec).always
    return max(computing, GRAPH_LAUNCH_S * always) + GRAPH_LAUNCH_S * (every - always)


def device_seconds(
    spec: RunSpec, step: "StepShape", parameters: int, flops: float, device: Device, triton: bool
) -> float:
    """Return the computing time of a step (see `step_seconds`): by bfloat16 roofline, else assumed utilisation."""
    training, roofline = spec.training, device.roofline
    if roofline is None or training.precision != "bf16":
        return flops / device.rate(training.precision)
    per_flop = launch_counts(spec).moved
    if triton:
        per_flop = TRITON_MOVED.get(spec.model.architecture, per_flop)
    moved = parameters * (micro_batches(spec, step) * PARAMETER_BYTES + STEP_BYTES[training.optimiser])
    moved += flops * per_flop / (1 if spec.model.reads == "speech" else spec.model.schedule_width)
    return flops / roofline.products + moved / roofline.bandwidth


def micro_batches(spec: RunSpec, step: "StepShape") -> int:
    """Return the number of micro-batches of a step."""
    positions = spec.training.micro_batch_frames if spec.model.reads == "speech" else spec.training.micro_batch_tokens
    return int(-(-max(step.src_positions, step.tgt_positions) // positions))


def launches(spec: RunSpec, src_length: float, tgt_length: float) -> float:
    """Return the kernel launches of a micro-batch with `src_length` and `tgt_length`; 0 if they were not counted."""
    found = launch_counts(spec)
    return found.always + found.source * src_length + found.target * tgt_length


def launch_counts(spec: RunSpec) -> LaunchCounts:
    """Return the counts of a run's architecture, else those of its family, else `NO_LAUNCHES`."""
    parts = " with fusion" if spec.fusion else ""
    if getattr(spec.model, "has_memory", False):
        parts += " with memory"
    names = (spec.model.architecture + parts, spec.model.family + parts)
    return next((COUNTED[name] for name in names if name in COUNTED), NO_LAUNCHES)

"""How long an update takes on a GPU: matrix products, bytes moved beside them, and launches of kernels, for which
models that go position by position wait. Counted by tests/gpu."""

from typing import NamedTuple

from pipeline.config import RunSpec
from pipeline.planning.corpus_size import UpdateShape
from pipeline.planning.devices import Device

SECONDS = 44e-6
"""Of a host for a counted launch, without CUDA graphs: the median of fifteen trainings that waited for it, 26 to 70, on
an H100 of a virtual machine (docs/measured/gpu-launches.md)."""
GRAPH_SECONDS = 5.5e-6
"""Of a GPU for a counted launch that a CUDA graph replays: the median of six trainings of small kernels on an H100, 5.1
to 7.0 (docs/measured/gpu.md)."""
PARAMETER_BYTES = 45.0
"""That a micro-batch moves for each parameter: casts of weights, and sums of gradients."""
UPDATE_BYTES = {"adam": 28.0, "adadelta": 100.0, "nag": 20.0}
"""The same of an update: weights and moments."""


class Asked(NamedTuple):
    """What a micro-batch asks for: launches always, and for each position of its longest sequence; bytes moved beside
    products, for each operation of these, times the width of the model but of recognisers, whose parts have several."""

    always: float
    source: float = 0
    target: float = 0
    moved: float = 0


COUNTED = {
    "transformer": Asked(600, moved=2),
    "transformer with fusion": Asked(620, target=3, moved=7),
    "weighted_transformer": Asked(1080, moved=4.3),
    "convolutional": Asked(1510, moved=3.6),
    "recurrent": Asked(285, source=6, target=25, moved=8.6),
    "recurrent with memory": Asked(450, source=92, target=25, moved=8.5),
    "language_model": Asked(110, target=9, moved=0.7),
    "ctc": Asked(530, source=15, moved=0.0048),
    "speech_attention": Asked(390, source=15, target=32, moved=0.0044),
    "speech_attention with fusion": Asked(420, source=15, target=45, moved=0.0043),
    "joint_recogniser": Asked(370, source=3, moved=0.004),
}
NOTHING = Asked(0)


def update_seconds(spec: RunSpec, update: UpdateShape, parameters: int, flops: float, device: Device) -> float:
    """Return the seconds of a step of `flops` operations on one GPU: the longer of computing and launching."""
    return max(device_seconds(spec, update, parameters, flops, device), launch_seconds(spec, update))


def device_seconds(spec: RunSpec, update: UpdateShape, parameters: int, flops: float, device: Device) -> float:
    """By the roofline of a device that has one, in bfloat16; else by its assumed utilisation."""
    training, roofline = spec.training, device.roofline
    if roofline is None or training.precision != "bf16":
        return flops / device.rate(training.precision)
    moved = parameters * (micro_batches(spec, update) * PARAMETER_BYTES + UPDATE_BYTES[training.optimiser])
    moved += flops * asked(spec).moved / (1 if spec.model.reads == "speech" else spec.model.schedule_width)
    return flops / roofline.products + moved / roofline.bandwidth


def launch_seconds(spec: RunSpec, update: UpdateShape) -> float:
    """Return the seconds that the kernels of a step take to launch, by the host or in a CUDA graph."""
    each = GRAPH_SECONDS if spec.training.cuda_graphs else SECONDS
    return each * micro_batches(spec, update) * launches(spec, update.src_length, update.tgt_length)


def micro_batches(spec: RunSpec, update: UpdateShape) -> int:
    positions = spec.training.micro_batch_frames if spec.model.reads == "speech" else spec.training.micro_batch_tokens
    return int(-(-max(update.src_positions, update.tgt_positions) // positions))


def launches(spec: RunSpec, src_length: float, tgt_length: float) -> float:
    """Of a micro-batch; 0 where none were counted."""
    found = asked(spec)
    return found.always + found.source * src_length + found.target * tgt_length


def asked(spec: RunSpec) -> Asked:
    kind = spec.model.architecture + (" with fusion" if spec.fusion else "")
    if getattr(spec.model, "has_memory", False):
        kind += " with memory"
    return COUNTED.get(kind, NOTHING)

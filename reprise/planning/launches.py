"""How many kernels an update launches on a GPU, as counted by tests/gpu: models that go position by position wait for
launches, not for arithmetic."""

from typing import NamedTuple

from pipeline.config import RunSpec
from reprise.planning.corpus_size import UpdateShape

SECONDS = 13.7e-6
"""Of a host for a launch, without CUDA graphs: 1207 of them took 16.5 ms."""


class Launches(NamedTuple):
    """Of a micro-batch: always, and for each position of its longest sequence."""

    always: float
    source: float = 0
    target: float = 0


COUNTED = {
    "transformer": Launches(600),
    "transformer with fusion": Launches(620, target=3),
    "weighted_transformer": Launches(1080),
    "convolutional": Launches(1510),
    "recurrent": Launches(285, source=6, target=25),
    "recurrent with memory": Launches(450, source=92, target=25),
    "language_model": Launches(110, target=9),
    "ctc": Launches(530, source=15),
    "speech_attention": Launches(390, source=15, target=32),
    "speech_attention with fusion": Launches(420, source=15, target=45),
    "joint_recogniser": Launches(370, source=3),
}


def launch_seconds(spec: RunSpec, update: UpdateShape) -> float:
    """Of an update, on one GPU."""
    positions = spec.training.micro_batch_frames if spec.model.reads == "speech" else spec.training.micro_batch_tokens
    parts = -(-max(update.src_positions, update.tgt_positions) // positions)
    return SECONDS * parts * launches(spec, update.src_length, update.tgt_length)


def launches(spec: RunSpec, src_length: float, tgt_length: float) -> float:
    """Of a micro-batch; 0 where none were counted."""
    kind = spec.model.architecture + (" with fusion" if spec.fusion else "")
    if getattr(spec.model, "has_memory", False):
        kind += " with memory"
    found = COUNTED.get(kind, Launches(0))
    return found.always + found.source * src_length + found.target * tgt_length

"""Which trainings begin first: those that compute most, so that none is left over at the end, alone on its core."""

from pipeline.config import RunSpec
from pipeline.models.batch_shape import BatchShape
from pipeline.models.settings import Reads
from pipeline.training.run_flops import run_flops

VOCABULARY = 8000
SENTENCES: dict[Reads, tuple[int, int]] = {"parallel": (25, 25), "speech": (300, 40), "text": (0, 40)}
"""Positions a side of a usual one: what a corpus holds is not known before it is made."""


def operations(spec: RunSpec) -> float:
    """About how many a training computes: to compare trainings by, not to plan with."""
    training, (src, tgt) = spec.training, SENTENCES[spec.model.reads]
    rows = training.sentences_per_update or (training.tokens_per_update or 0) / tgt
    return training.max_steps * run_flops(spec, BatchShape(VOCABULARY, rows * src, rows * tgt, src, tgt))

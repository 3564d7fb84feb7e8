"""Which trainings begin first: those that compute most, so that none is left over at the end, alone on its core."""

from pipeline.config import RunSpec
from pipeline.models.flops import BatchShape
from pipeline.models.settings import Reads
from pipeline.training.run_flops import run_flops

USUAL: dict[Reads, tuple[int, int, int]] = {"parallel": (8000, 25, 25), "speech": (32, 300, 40), "text": (32, 0, 40)}
"""Symbols, and positions a side of a usual sentence: what a corpus holds is not known before it is made."""


def operations(spec: RunSpec) -> float:
    """About how many a training computes: to compare trainings by, not to plan with."""
    training, (symbols, src, tgt) = spec.training, USUAL[spec.model.reads]
    rows = training.sentences_per_update or (training.tokens_per_update or 0) / tgt
    return training.max_steps * run_flops(spec, BatchShape(symbols, rows * src, rows * tgt, src, tgt))

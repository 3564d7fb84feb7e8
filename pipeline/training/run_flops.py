"""Operations of all that a run computes in training."""

from pipeline.config import RunSpec
from pipeline.models.flops import BatchShape, fused_training_flops, training_flops


def run_flops(spec: RunSpec, shape: BatchShape) -> float:
    """Of forward and backward, its fused language model among it."""
    if spec.fusion is None or spec.language_model is None:
        return training_flops(spec.model, shape)
    frozen = spec.fusion.kind == "deep" or spec.training.trained_part == "fusion"
    return fused_training_flops(spec.fusion, spec.model, spec.language_model.model, shape, frozen)

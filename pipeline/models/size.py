"""How large a model is, without the memory to hold it."""

import torch

from pipeline.config import ModelConfig
from pipeline.models.build import build_model
from pipeline.models.seq2seq import count_parameters


def parameters_of(config: ModelConfig, vocab_sizes: tuple[int, int]) -> int:
    """Trainable scalars; vocab_sizes = (source, target) rows."""
    with torch.device("meta"):
        return count_parameters(build_model(config, vocab_sizes))

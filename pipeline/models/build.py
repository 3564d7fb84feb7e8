"""Build a model from its settings, and count its parameters."""

from collections.abc import Callable

import torch

from pipeline.models.architectures import model_module
from pipeline.models.seq2seq import Seq2Seq, count_parameters
from pipeline.models.settings import ModelSettings


def build_model(config: ModelSettings, vocab_sizes: tuple[int, int]) -> Seq2Seq:
    """Build a model with random weights from torch's global generator.

    Args:
        config: Settings of its architecture.
        vocab_sizes: Source and target vocabulary.

    Raises:
        UserError: The vocabularies do not fit the settings.
    """
    return model_module(config).build(config, vocab_sizes)


def size_of(build: Callable[[], torch.nn.Module]) -> int:
    """Count the trainable scalars of the model that `build` returns, without allocating it."""
    with torch.device("meta"):
        return count_parameters(build())

"""From a model's settings to the model, and how large it is."""

from collections.abc import Callable

import torch

from pipeline.models.architectures import part_of
from pipeline.models.seq2seq import Seq2Seq, count_parameters
from pipeline.models.settings import ModelSettings


def build_model(config: ModelSettings, vocab_sizes: tuple[int, int]) -> Seq2Seq:
    """An initialised model; vocab_sizes = (source, target) rows. The draw is from torch's global generator.

    Raises:
        UserError: the vocabularies do not fit the settings.
    """
    return part_of(config, "model").build(config, vocab_sizes)


def size_of(build: Callable[[], torch.nn.Module]) -> int:
    """Trainable scalars of the model that `build` makes, without the memory to hold them."""
    with torch.device("meta"):
        return count_parameters(build())

"""How large a model is, without the memory to hold it."""

from collections.abc import Callable

import torch

from pipeline.models.seq2seq import count_parameters


def size_of(build: Callable[[], torch.nn.Module]) -> int:
    """Trainable scalars of the model that `build` makes."""
    with torch.device("meta"):
        return count_parameters(build())

"""Floating-point operations of training, counted from the matrix products (2 a multiply-add).

Embedding look-ups, softmax, normalisation and dropout are left out: below 2 % at the paper's sizes.
"""

from pipeline.models.architectures import part_of
from pipeline.models.batch_shape import BatchShape
from pipeline.models.settings import ModelSettings

BACKWARD = 2
"""The backward pass of a product is two products of its size."""


def forward_products(config: ModelSettings, shape: BatchShape) -> float:
    """Multiply-adds of a forward pass."""
    return part_of(config, "flops").forward_products(config, shape)


def training_flops(config: ModelSettings, shape: BatchShape) -> float:
    """Operations of forward and backward."""
    return 2.0 * (1 + BACKWARD) * forward_products(config, shape)

"""Multiply-adds of the language model."""

from pipeline.models.batch_shape import BatchShape
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.layers.flops import gru


def forward_products(config: LanguageModelConfig, shape: BatchShape) -> float:
    widths = [config.embedding_width] + [config.hidden_width] * (config.num_layers - 1)
    character = sum(gru(width, config.hidden_width) for width in widths) + config.hidden_width * shape.vocab
    return shape.tgt_positions * character

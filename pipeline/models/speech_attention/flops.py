"""Multiply-adds of the attention recogniser."""

from math import ceil

from pipeline.models.batch_shape import BatchShape
from pipeline.models.layers.flops import gru, lstm
from pipeline.models.speech_attention.settings import AttentionRecogniserConfig


def forward_products(config: AttentionRecogniserConfig, shape: BatchShape) -> float:
    encoder, share = 0.0, config.frame_stacking
    positions, inputs = shape.src_positions / share, config.features * share
    annotation, width = config.annotation_width, config.decoder_width
    for layer in range(config.encoder_layers):
        encoder += 2 * lstm(inputs, config.encoder_width) * positions
        inputs = annotation
        if layer < config.pooled_layers:
            positions, share = positions / 2, share * 2
    keys = positions * annotation * config.attention_width
    span = 2 * (config.location_width // 2) + 1
    look = ceil(shape.src_length / share) * (config.attention_width * (span + 1) + annotation)
    update, table = width * config.attention_width + gru(annotation, width), 3 * config.embedding_width * width
    step = look + update + config.state_width * shape.vocab
    return encoder + keys + shape.vocab * table + shape.tgt_positions * step

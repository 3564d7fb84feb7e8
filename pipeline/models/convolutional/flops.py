"""Multiply-adds of the convolutional model."""

from pipeline.models.batch_shape import BatchShape
from pipeline.models.convolutional.settings import ConvolutionalConfig


def forward_products(config: ConvolutionalConfig, shape: BatchShape) -> float:
    embedding, channels = config.d_embedding, config.d_hidden
    bridge = embedding * channels
    encoder = 2 * bridge + config.encoder_layers * convolution(channels, config.encoder_kernel)
    attention = 2 * bridge + 2 * shape.src_length * embedding
    layers = config.decoder_layers * (convolution(channels, config.decoder_kernel) + attention)
    decoder = bridge + layers + config.d_readout * (channels + shape.vocab)
    return encoder * shape.src_positions + decoder * shape.tgt_positions


def convolution(channels: int, kernel: int) -> int:
    return kernel * channels * 2 * channels

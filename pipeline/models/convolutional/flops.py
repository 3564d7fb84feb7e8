"""Multiply-adds of the convolutional model (convolutional.py)."""

from pipeline.models.convolutional.settings import ConvolutionalConfig


def convolutional(
    config: ConvolutionalConfig, vocab: int, src_tokens: float, tgt_tokens: float, src_len: float
) -> float:
    """Of a forward pass, see `pipeline/models/flops.py`."""
    embedding, channels = config.d_embedding, config.d_hidden
    bridge = embedding * channels
    encoder = 2 * bridge + config.encoder_layers * convolution(channels, config.encoder_kernel)
    attention = 2 * bridge + 2 * src_len * embedding
    layers = config.decoder_layers * (convolution(channels, config.decoder_kernel) + attention)
    decoder = bridge + layers + config.d_readout * (channels + vocab)
    return encoder * src_tokens + decoder * tgt_tokens


def convolution(channels: int, kernel: int) -> int:
    return kernel * channels * 2 * channels

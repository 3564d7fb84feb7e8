"""Multiply-adds of the CTC recogniser, which reads no characters."""

from pipeline.models.batch_shape import BatchShape
from pipeline.models.ctc.settings import KERNELS, CTCConfig
from pipeline.models.layers.flops import gru


def forward_products(config: CTCConfig, shape: BatchShape) -> float:
    positions, bands, channels, total = shape.src_positions, config.features, 1, 0.0
    for width, height, stride, jump in KERNELS:
        read, positions, bands = bands, positions / stride, -(-bands // jump)
        rows = min(height, read)  # of the kernel, the rest multiplies padding
        total += positions * bands * width * rows * channels * config.channels
        channels = config.channels
    inputs = channels * bands
    for _ in range(config.num_layers):
        total += positions * (inputs * config.hidden_width + 2 * gru(config.hidden_width, config.hidden_width))
        inputs = config.hidden_width
    return total + positions * config.hidden_width * shape.vocab

"""Multiply-adds of the joint recogniser."""

from pipeline.models.batch_shape import BatchShape
from pipeline.models.joint_recogniser.settings import JointRecogniserConfig
from pipeline.models.layers.flops import lstm
from pipeline.models.transformer.flops import forward_products as transformer_products


def forward_products(config: JointRecogniserConfig, shape: BatchShape) -> float:
    positions, length, bands, inputs, total = shape.src_positions, shape.src_length, config.features, 1, 0.0
    for stride in config.strides:
        positions, length, bands = positions / stride, length / stride, -(-bands // 2)
        total += positions * bands * 9 * inputs * config.channels
        inputs = config.channels
    width = config.d_model
    total += positions * width * (inputs * bands + shape.vocab)
    total += positions * config.encoder_layers * 2 * lstm(width, width // 2)
    both = shape._replace(src_positions=positions, src_length=length)
    encoder_alone = both._replace(tgt_positions=0)
    keys_values = config.num_layers * positions * width * config.num_heads * (config.key_width + config.value_width)
    return total + transformer_products(config, both) - transformer_products(config, encoder_alone) + keys_values

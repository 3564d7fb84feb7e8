"""Multiply-adds of the recurrent models."""

from pipeline.models.batch_shape import BatchShape
from pipeline.models.layers.flops import gru
from pipeline.models.recurrent.settings import RecurrentConfig


def forward_products(config: RecurrentConfig, shape: BatchShape) -> float:
    embedding, state, annotation, src_length = config.d_embedding, config.d_state, config.d_annotation, shape.src_length
    stacked = config.backward_reads == "forward"
    encoder: float = gru(embedding, state) + gru(state if stacked else embedding, state)
    if config.has_memory:
        encoder += 2 * memory(config, src_length)
    first = embedding if config.channel_names[0] == "emb" else 2 * state
    for name in config.channel_names[1:]:
        encoder += 2 * annotation * (first + (embedding if name == "emb" else 2 * state))
        first = annotation
    # The mean of the states and the decoder's first state, once a sentence.
    start = 2 * state + 2 * state * state / src_length
    keys = config.d_attention * annotation
    attention = config.d_attention * state + src_length * (config.d_attention + annotation)
    readout = config.d_readout * (state + embedding + annotation + shape.vocab)
    decoder = gru(embedding, state) + attention + gru(annotation, state) + readout
    return (encoder + start + keys) * shape.src_positions + decoder * shape.tgt_positions


def memory(config: RecurrentConfig, src_length: float) -> float:
    """What a step of the external memory costs beside the recurrent unit: every cell is addressed, and read."""
    state, hidden = config.d_state, config.d_attention
    gates = 3 * state * state
    return gates + hidden * state + src_length * (hidden * state + hidden + state)

"""Multiply-adds of the recurrent models (recurrent.py)."""

from pipeline.models.recurrent.settings import RecurrentConfig


def recurrent(config: RecurrentConfig, vocab: int, src_tokens: float, tgt_tokens: float, src_len: float) -> float:
    """Of a forward pass, see `pipeline/models/flops.py`."""
    embedding, state, annotation = config.d_embedding, config.d_state, config.d_annotation
    stacked = config.backward_reads == "forward"
    encoder = gru(embedding, state) + gru(state if stacked else embedding, state)
    if config.has_memory:
        encoder += 2 * memory(config, src_len)
    first = embedding if config.channel_names[0] == "emb" else 2 * state
    for name in config.channel_names[1:]:
        encoder += 2 * annotation * (first + (embedding if name == "emb" else 2 * state))
        first = annotation
    # The mean of the states and the decoder's first state, once a sentence.
    start = 2 * state + 2 * state * state / src_len
    keys = config.d_attention * annotation
    attention = config.d_attention * state + src_len * (config.d_attention + annotation)
    readout = config.d_readout * (state + embedding + annotation + vocab)
    decoder = gru(embedding, state) + attention + gru(annotation, state) + readout
    return (encoder + start + keys) * src_tokens + decoder * tgt_tokens


def gru(width_in: int, width: int) -> int:
    return 3 * width * (width_in + width)


def memory(config: RecurrentConfig, src_len: float) -> float:
    """What a step of the external memory costs beside the recurrent unit: every cell is addressed, and read."""
    state, hidden = config.d_state, config.d_attention
    gates = 3 * state * state
    return gates + hidden * state + src_len * (hidden * state + hidden + state)

"""Settings of small recurrent and convolutional models."""

from pipeline.models.convolutional.settings import ConvolutionalConfig
from pipeline.models.recurrent.settings import RecurrentConfig

CHANNELS = ["rnn", "ntm", "emb", "ntm-rnn", "ntm-emb", "rnn-emb", "ntm-rnn-emb"]


def recurrent_config(channels: str = "rnn", **changes) -> RecurrentConfig:
    settings = {"d_embedding": 12, "d_state": 12, "d_attention": 10, "d_readout": 14, "output_dropout": 0.0}
    settings |= {"init_scale": 0.5}
    return RecurrentConfig(architecture="recurrent", channels=channels, **(settings | changes))


def dl4mt_config(**changes) -> RecurrentConfig:
    settings = {"d_embedding": 10, "d_state": 12, "d_attention": 24, "d_readout": 10, "init_scale": 0.01}
    settings |= {"backward_reads": "embeddings", "embedding_bias": False, "output_bias": True, "reset_bias": True}
    settings |= {"output_dropout": 0.0, "initialisation": "orthogonal"}
    return RecurrentConfig(architecture="recurrent", channels="rnn", **(settings | changes))


def convolutional_config(**changes) -> ConvolutionalConfig:
    settings = {"encoder_layers": 2, "decoder_layers": 3, "d_embedding": 10, "d_hidden": 12, "d_readout": 14}
    settings |= {"encoder_kernel": 5, "decoder_kernel": 3, "dropout": 0.0, "max_positions": 40}
    return ConvolutionalConfig(architecture="convolutional", **(settings | changes))


CONFIGS = {
    **{channels: recurrent_config(channels) for channels in CHANNELS},
    "tanh content": recurrent_config("ntm-rnn-emb", memory_write="tanh_content"),
    "blended like a gru": recurrent_config("ntm-rnn-emb", blending="gru"),
    "both directions read embeddings": recurrent_config("ntm-rnn", backward_reads="embeddings"),
    "dl4mt": dl4mt_config(),
    "convolutional": convolutional_config(),
}
STRUCTURES = {name: config for name, config in CONFIGS.items() if name not in CHANNELS[1:-1]}
"""Configurations without those whose channels are only some of another one's."""

"""Floating-point operations of training, counted from the matrix products (2 a multiply-add).

Embedding look-ups, softmax, normalisation and dropout are left out: below 2 % at the paper's sizes.
"""

from pipeline.config import ModelConfig, RunSpec
from pipeline.models import speech_flops
from pipeline.models.convolutional.flops import convolutional
from pipeline.models.convolutional.settings import ConvolutionalConfig
from pipeline.models.ctc.settings import CTCConfig
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.recurrent.flops import recurrent
from pipeline.models.recurrent.settings import RecurrentConfig
from pipeline.models.speech_attention.settings import SpeechAttentionConfig
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig

BACKWARD = 2
"""The backward pass of a product is two products of its size."""


def run_flops(spec: RunSpec, vocab: int, src_tokens: float, tgt_tokens: float, src_len: float, tgt_len: float) -> float:
    """Operations of forward and backward of all that a run computes, its fused language model among it."""
    shape = (vocab, src_tokens, tgt_tokens, src_len, tgt_len)
    if spec.fusion is None:
        return training_flops(spec.model, *shape)
    frozen = spec.fusion.kind == "deep" or spec.training.trained_part == "fusion"
    width = state_width(spec.model)
    task = forward_products(spec.model, *shape) - tgt_tokens * width * vocab  # without its own output layer
    language_model = tgt_tokens * speech_flops.language_model(spec.language_model.model, vocab)
    layer = tgt_tokens * speech_flops.fusion(spec.fusion, width, spec.language_model.model.hidden_width, vocab)
    return 2.0 * (language_model + task * (1 if frozen else 1 + BACKWARD) + layer * (1 + BACKWARD))


def training_flops(
    config: ModelConfig, vocab: int, src_tokens: float, tgt_tokens: float, src_len: float, tgt_len: float
) -> float:
    """Operations of forward and backward over src_tokens and tgt_tokens subwords in sequences of mean length src_len
    and tgt_len; `vocab` is the target vocabulary's size. Of speech, source tokens are frames."""
    return 2.0 * (1 + BACKWARD) * forward_products(config, vocab, src_tokens, tgt_tokens, src_len, tgt_len)


def forward_products(
    config: ModelConfig, vocab: int, src_tokens: float, tgt_tokens: float, src_len: float, tgt_len: float
) -> float:
    """Multiply-adds of a forward pass."""
    match config:
        case LanguageModelConfig():
            return tgt_tokens * speech_flops.language_model(config, vocab)
        case SpeechAttentionConfig():
            return speech_flops.attention(config, vocab, src_tokens, tgt_tokens, src_len)
        case CTCConfig():
            return speech_flops.ctc(config, vocab, src_tokens)
        case RecurrentConfig():
            return recurrent(config, vocab, src_tokens, tgt_tokens, src_len)
        case ConvolutionalConfig():
            return convolutional(config, vocab, src_tokens, tgt_tokens, src_len)
        case TransformerConfig():
            return transformer(config, vocab, src_tokens, tgt_tokens, src_len, tgt_len)
    raise ValueError(f"no count of operations for {type(config).__name__}")


def state_width(config: ModelConfig) -> int:
    """Of what a fusion reads of the decoder."""
    match config:
        case TransformerConfig():
            return config.d_model
        case RecurrentConfig() | ConvolutionalConfig():
            return config.d_readout
    return speech_flops.state_width(config)


def transformer(
    config: TransformerConfig, vocab: int, src_tokens: float, tgt_tokens: float, src_len: float, tgt_len: float
) -> float:
    # Heads times width; in a branched attention too, as long as both widths follow from d_model.
    keys, values = config.num_heads * config.key_width, config.num_heads * config.value_width
    self_projections = config.d_model * (2 * keys + values)
    reads = keys + values
    encoder = self_projections + reads * src_len
    # A decoder query sees half of its own sequence on average, but the whole square is computed.
    decoder = self_projections + reads * tgt_len + config.d_model * keys + reads * src_len
    source_keys = config.d_model * (keys + values)
    plain_mix = values * config.d_model
    if isinstance(config, WeightedTransformerConfig):
        encoder += branched(config)
        decoder += branched(config) + plain_mix
    else:
        encoder += plain_mix + 2 * config.d_model * config.d_ff
        decoder += 2 * plain_mix + 2 * config.d_model * config.d_ff
    per_src = config.num_layers * (encoder + source_keys)
    per_tgt = config.num_layers * decoder + config.d_model * vocab
    return per_src * src_tokens + per_tgt * tgt_tokens


def branched(config: WeightedTransformerConfig) -> int:
    """Multiply-adds a position of eq. 6 and 7 with W^{O_i} W_1 formed beforehand (weighted_transformer.py)."""
    copies = config.branches if config.ffn_mode == "shared" else 1
    return copies * (config.d_v or config.d_model // config.branches) * config.d_ff + config.d_ff * config.d_model

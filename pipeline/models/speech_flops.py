"""Multiply-adds of one forward pass of the models of Cold Fusion, counted from their matrix products.

Source positions are frames, target positions characters; both counts include padding.
"""

from math import ceil

from pipeline.models.ctc.model import KERNELS
from pipeline.models.ctc.settings import CTCConfig
from pipeline.models.fusion.settings import FusionConfig
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.speech_attention.settings import SpeechAttentionConfig


def lstm(inputs: int, width: int) -> int:
    """A position of one direction: four gates."""
    return 4 * width * (inputs + width)


def gru(inputs: int, width: int) -> int:
    """A position of one direction: three gates."""
    return 3 * width * (inputs + width)


def language_model(config: LanguageModelConfig, vocab: int) -> int:
    """A character."""
    widths = [config.embedding_width] + [config.hidden_width] * (config.num_layers - 1)
    return sum(gru(width, config.hidden_width) for width in widths) + config.hidden_width * vocab


def attention(config: SpeechAttentionConfig, vocab: int, frames: float, characters: float, frames_each: float) -> float:
    """frames, characters: of all utterances; frames_each: of one."""
    encoder, positions, inputs = 0.0, frames / config.frame_stacking, config.features * config.frame_stacking
    annotation, share = 2 * config.encoder_width, config.frame_stacking
    for layer in range(config.encoder_layers):
        encoder += 2 * lstm(inputs, config.encoder_width) * positions
        inputs = annotation
        if layer < config.pooled_layers:
            positions, share = positions / 2, share * 2
    keys = positions * annotation * config.attention_width
    span = 2 * (config.location_width // 2) + 1
    look = ceil(frames_each / share) * (config.attention_width * (span + 1) + annotation)
    width = config.decoder_width
    state = width + (annotation if config.task_state == "state and context" else 0)
    write = width * config.attention_width + gru(config.embedding_width + annotation, width) + state * vocab
    return encoder + keys + characters * (look + write)


def ctc(config: CTCConfig, vocab: int, frames: float) -> float:
    positions, bands, channels, total = frames, config.features, 1, 0.0
    for width, height, stride, jump in KERNELS:
        positions, bands = positions / stride, -(-bands // jump)
        total += positions * bands * width * height * channels * config.channels
        channels = config.channels
    inputs = channels * bands
    for _ in range(config.num_layers):
        total += positions * (inputs * config.hidden_width + 2 * gru(config.hidden_width, config.hidden_width))
        inputs = config.hidden_width
    return total + positions * config.hidden_width * vocab


def fusion(config: FusionConfig, state_width: int, lm_width: int, vocab: int) -> int:
    """A character."""
    feature = lm_width if config.lm_feature == "state" else config.width
    project = 0 if config.lm_feature == "state" else vocab * feature
    read = feature + (state_width if config.gate_reads == "task and lm" else 0)
    gate = read * (1 if config.gate == "scalar" else feature)
    fused = state_width + feature
    output = fused * config.width + config.width * vocab if config.output == "hidden" else fused * vocab
    return project + gate + output


def state_width(config: SpeechAttentionConfig) -> int:
    return config.decoder_width + (2 * config.encoder_width if config.task_state == "state and context" else 0)

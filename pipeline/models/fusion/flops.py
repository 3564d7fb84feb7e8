"""Operations of a decoder fused with a language model."""

from pipeline.models.batch_shape import BatchShape
from pipeline.models.flops import BACKWARD, forward_products
from pipeline.models.fusion.settings import FusionConfig
from pipeline.models.language_model.settings import LanguageModelConfig
from pipeline.models.settings import ModelSettings


def fused_training_flops(
    config: FusionConfig, task: ModelSettings, language_model: LanguageModelConfig, shape: BatchShape, frozen: bool
) -> float:
    """Of forward and backward of all three parts; `frozen` says whether the task model is left as it is."""
    if task.state_width is None:
        raise ValueError(f"a model of architecture {task.architecture} can't be fused")
    # Without its own output layer, which the fusion takes the place of.
    decoder = forward_products(task, shape) - shape.tgt_positions * task.state_width * shape.vocab
    fusion = shape.tgt_positions * fusion_layer(config, task.state_width, language_model.hidden_width, shape.vocab)
    passes = 1 if frozen else 1 + BACKWARD
    return 2.0 * (forward_products(language_model, shape) + decoder * passes + fusion * (1 + BACKWARD))


def fusion_layer(config: FusionConfig, state_width: int, lm_width: int, vocab: int) -> int:
    """Multiply-adds of a character."""
    feature = lm_width if config.lm_feature == "state" else config.width
    project = 0 if config.lm_feature == "state" else vocab * feature
    read = feature + (state_width if config.gate_reads == "task and lm" else 0)
    gate = read * (1 if config.gate == "scalar" else feature)
    fused = state_width + feature
    output = fused * config.width + config.width * vocab if config.output == "hidden" else fused * vocab
    return project + gate + output

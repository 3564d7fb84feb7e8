"""FLOPs of training, counted from the matrix multiplications (2 per multiply-add).

Embedding look-ups, softmax, normalisation and dropout are left out: less than 2 % at the papers' sizes. The forward
pass of an architecture is counted by its settings (`ModelSettings.forward_macs`).
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pipeline.models.fusion.settings import FusionConfig
    from pipeline.models.language_model.settings import LanguageModelConfig
    from pipeline.models.settings import ModelSettings

BACKWARD = 2
"""The backward pass of a matrix multiplication is two of the same size."""


class BatchShape(NamedTuple):
    """Sizes that the FLOPs of a batch depend on; source positions of speech are frames."""

    vocab: int
    """Target vocabulary."""
    src_positions: float
    """Source positions of all sequences together, padding included."""
    tgt_positions: float
    """The same of the target side."""
    src_length: float
    """Source positions of one sequence."""
    tgt_length: float
    """Target positions of one sequence."""


def lstm_macs(width_in: int, width: int) -> int:
    """Return the multiply-adds per position of one LSTM direction: four gates."""
    return 4 * width * (width_in + width)


def gru_macs(width_in: int, width: int) -> int:
    """Return the multiply-adds per position of one GRU direction: three gates."""
    return 3 * width * (width_in + width)


def training_flops(config: "ModelSettings", shape: BatchShape) -> float:
    """Return the FLOPs of forward and backward pass."""
    return 2.0 * (1 + BACKWARD) * config.forward_macs(shape)


def fused_training_flops(
    config: "FusionConfig",
    task: "ModelSettings",
    language_model: "LanguageModelConfig",
    shape: BatchShape,
    frozen: bool,
) -> float:
    """Return the FLOPs of forward and backward pass of a decoder fused with a language model.

    Args:
        config: The fusion layer.
        task: The task model, without its own output layer, which the fusion replaces.
        language_model: Never trained here.
        shape: Sizes of the batch.
        frozen: The task model is not trained.

    Raises:
        ValueError: The task model has no task state.
    """
    if task.state_width is None:
        raise ValueError(f"a model of architecture {task.architecture} can't be fused")
    decoder = task.forward_macs(shape) - shape.tgt_positions * task.state_width * shape.vocab
    fusion = shape.tgt_positions * config.macs_per_symbol(task.state_width, language_model.hidden_width, shape.vocab)
    passes = 1 if frozen else 1 + BACKWARD
    return 2.0 * (language_model.forward_macs(shape) + decoder * passes + fusion * (1 + BACKWARD))

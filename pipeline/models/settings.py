"""Base classes of all model settings, and the FLOPs of training that follow from them.

FLOPs are counted from the matrix multiplications (2 per multiply-add). Embedding look-ups, softmax, normalisation and
dropout are left out: less than 2 % at the papers' sizes. Each architecture counts its own forward pass
(`ModelSettings.forward_macs`).
"""

from abc import abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from pipeline.core.schema import Closed, Count, CountOrNone, Probability

PAD, UNK, BOS, EOS = 0, 1, 2, 3
"""Reserved ids of every vocabulary."""

Reads = Literal["parallel", "speech", "text"]
"""Sentence pairs; features and transcripts; or sentences without a source, for language models."""
BACKWARD = 2
"""The backward pass of a matrix multiplication is two of the same size."""
BRANCHES = ("branch_weights", "branch_weights_seed")
"""Settings of a decoding that need branches."""
LENGTHS = ("length_penalty", "length_normalisation", "max_extra_length")
"""Settings of a decoding that only beam search reads."""


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
    """Return the multiply-adds of one time step of one LSTM direction, which has four gates."""
    return 4 * width * (width_in + width)


def gru_macs(width_in: int, width: int) -> int:
    """Return the multiply-adds of one time step of one GRU direction, which has three gates."""
    return 3 * width * (width_in + width)


class ModelSettings(Closed):
    """Settings of an architecture.

    A concrete class has `architecture: Literal[<folder name>]`, by which the registry finds it.
    """

    reads: ClassVar[Reads] = "parallel"
    """The part of a corpus that a model reads. A model of text reads the target side of any corpus."""
    fusable: ClassVar[bool] = True
    """True if the loss of the decoder, under one optimiser rule, trains all weights, as Cold Fusion needs."""
    samples: ClassVar[bool] = False
    """True if the decoder may read its own predictions in training."""
    unread: ClassVar[tuple[str, ...]] = ("ctc_weight", "word_bonus", *BRANCHES)
    """Settings of a decoding that have no effect on these models."""

    architecture: str

    @property
    def family(self) -> str:
        """Name of the group of systems whose seeds are assumed to have the same variance."""
        return {"parallel": self.architecture, "speech": "recogniser", "text": "language model"}[self.reads]

    @property
    @abstractmethod
    def schedule_width(self) -> int:
        """Width that takes the role of d_model in the learning-rate schedule."""

    @property
    def branch_schedule_width(self) -> float:
        """The same for branch weights, if a model has them (`Seq2Seq.parameter_groups`)."""
        return self.schedule_width

    @property
    def state_width(self) -> int | None:
        """Width of the task state that a language model can be fused with; None if there is none."""
        return None

    @abstractmethod
    def forward_macs(self, shape: BatchShape) -> float:
        """Count the multiply-adds of a forward pass over a batch."""

    def output_frames(self, frames: Any) -> Any:
        """Convert input frames to output frames, if they bound the target length.

        Every character of a target needs an output frame, and another one between two equal characters.

        Args:
            frames: Number of frames of each utterance, an integer or an array of integers.

        Returns:
            Output frames, in the type and shape of `frames`; None if a target may have any length.
        """
        return None

    def check_training(self, training: Any) -> None:
        """Check that a model with these settings can be trained as `training` says.

        Raises:
            ValueError: It cannot; the message names the setting to change.
        """


class SpeechSettings(ModelSettings):
    """Settings of every model that reads speech (layers/speech_encoder.py)."""

    reads: ClassVar[Reads] = "speech"

    features: int = Field(default=40, ge=40, le=40, description="Log-mel features per frame, as corpora have them")
    utterance_mean: Literal["removed", "kept"] = Field(
        default="kept", description="Mean of each feature over an utterance"
    )
    utterance_deviation: Literal["one", "kept"] = Field(
        default="kept", description="Deviation of each feature over an utterance; one needs the mean removed"
    )
    time_masks: CountOrNone = Field(default=0, description="SpecAugment: spans of time set to zero in training")
    time_mask_frames: Count = Field(default=40, description="SpecAugment: largest span, in frames")
    time_mask_share: Probability = Field(
        default=0.2, description="SpecAugment: largest span, as a share of the utterance"
    )
    frequency_masks: CountOrNone = Field(
        default=0, description="SpecAugment: bands of features set to zero in training"
    )
    frequency_mask_bands: Count = Field(default=10, description="SpecAugment: largest band, in features")

    @model_validator(mode="after")
    def has_a_mean_to_deviate_from(self):
        """Refuse unit deviation of features whose mean is kept."""
        if self.utterance_deviation == "one" and self.utterance_mean == "kept":
            raise ValueError("utterance_deviation: one needs utterance_mean: removed")
        return self


def training_flops(config: ModelSettings, shape: BatchShape) -> float:
    """Return the FLOPs of one training step: a forward and a backward pass over a batch."""
    return 2.0 * (1 + BACKWARD) * config.forward_macs(shape)

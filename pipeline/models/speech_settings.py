"""Settings of every model that hears speech."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Count, CountOrNone, Probability
from pipeline.models.settings import ModelSettings, Reads


class SpeechSettings(ModelSettings):
    """What is made of frames before a model reads them (layers/frames_read.py)."""

    reads: ClassVar[Reads] = "speech"

    features: Count = Field(default=40, description="Log-mel filter banks of a frame")
    utterance_mean: Literal["removed", "kept"] = Field(default="kept", description="Of each feature of an utterance")
    utterance_deviation: Literal["one", "kept"] = Field(
        default="kept", description="The same; one, if the mean is removed"
    )
    time_masks: CountOrNone = Field(default=0, description="SpecAugment: stretches of time set to zero in training")
    time_mask_frames: Count = Field(default=40, description="SpecAugment: the most frames of one")
    time_mask_share: Probability = Field(default=0.2, description="SpecAugment: its largest share of an utterance")
    frequency_masks: CountOrNone = Field(
        default=0, description="SpecAugment: bands of features set to zero in training"
    )
    frequency_mask_bands: Count = Field(default=10, description="SpecAugment: the most features of one")

    @model_validator(mode="after")
    def has_a_mean_to_deviate_from(self):
        if self.utterance_deviation == "one" and self.utterance_mean == "kept":
            raise ValueError("utterance_deviation one is that of features whose utterance_mean is removed")
        return self

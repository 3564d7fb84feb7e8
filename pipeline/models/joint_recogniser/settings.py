"""Settings of the joint recogniser."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.models.settings import Reads
from pipeline.models.transformer.settings import AnyTransformerConfig
from pipeline.schema import Count, Probability

Number = Annotated[int, Field(ge=0)]


class JointRecogniserConfig(AnyTransformerConfig):
    """Strided convolutions and residual BLSTMs, read by CTC and by the decoder of a Transformer of `num_layers`."""

    reads: ClassVar[Reads] = "speech"

    architecture: Literal["joint_recogniser"] = Field(description="CTC and attention (Watanabe et al. 2017)")
    features: Count = Field(default=40, description="Log-mel filter banks of a frame")
    channels: Count = Field(default=32, description="Channels of both 3 x 3 convolutions, of stride 2 in frequency")
    subsampling: Literal[2, 4] = Field(
        default=4, description="Frames of a position: strides of the convolutions in time"
    )
    encoder_layers: Count = Field(default=3, description="Residual BLSTM layers of d_model / 2 units a direction")
    encoder_dropout: Probability = Field(default=0.1, description="Of what each of them adds")
    ctc_share: float = Field(
        default=0.3, ge=0, le=1, strict=False, description="Of CTC in the loss; the rest is the decoder's"
    )
    utterance_mean: Literal["removed", "kept"] = Field(default="kept", description="Of each feature of an utterance")
    utterance_deviation: Literal["one", "kept"] = Field(
        default="kept", description="The same; one, if the mean is removed"
    )
    time_masks: Number = Field(default=0, description="SpecAugment: stretches of time set to zero in training")
    time_mask_frames: Count = Field(default=40, description="SpecAugment: the most frames of one")
    time_mask_share: Probability = Field(default=0.2, description="SpecAugment: its largest share of an utterance")
    frequency_masks: Number = Field(default=0, description="SpecAugment: bands of features set to zero in training")
    frequency_mask_bands: Count = Field(default=10, description="SpecAugment: the most features of one")

    @model_validator(mode="after")
    def can_be_built(self):
        if self.utterance_deviation == "one" and self.utterance_mean == "kept":
            raise ValueError("utterance_deviation one is that of features whose utterance_mean is removed")
        if self.d_model % 2:
            raise ValueError(f"d_model {self.d_model} must be even: half of it is read in each direction")
        return self

    @property
    def strides(self) -> tuple[int, int]:
        """In time, of the two convolutions; in frequency both have 2."""
        return 2, self.subsampling // 2

    def output_frames(self, frames: Any) -> Any:
        for stride in self.strides:
            frames = -(-frames // stride)
        return frames

"""Settings of the joint recogniser."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Number, Probability, Width
from pipeline.models.speech_settings import SpeechSettings
from pipeline.models.transformer.settings import AnyTransformerConfig


class JointRecogniserConfig(SpeechSettings, AnyTransformerConfig):
    """Strided convolutions and residual BLSTMs, read by CTC and by the decoder of a Transformer of `num_layers`."""

    fusable: ClassVar[bool] = False
    architecture: Literal["joint_recogniser"] = Field(description="CTC and attention (Watanabe et al. 2017)")
    channels: Width = Field(default=32, description="Channels of both 3 x 3 convolutions, of stride 2 in frequency")
    subsampling: Literal[2, 4] = Field(default=4, description="Frames of a position: the convolutions' strides in time")
    encoder_layers: Width = Field(default=3, description="Residual BLSTM layers of d_model / 2 units a direction")
    encoder_dropout: Probability = Field(default=0.1, description="Of what each of them adds")
    ctc_share: Number = Field(default=0.3, ge=0, le=1, description="Of CTC in the loss; the rest is the decoder's")

    @model_validator(mode="after")
    def can_be_built(self):
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

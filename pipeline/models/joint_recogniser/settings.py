"""Settings and FLOPs of the joint recogniser."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Number, Probability, Width
from pipeline.models.settings import BRANCHES, LENGTHS, BatchShape, SpeechSettings, lstm_macs
from pipeline.models.transformer.settings import AnyTransformerConfig


class JointRecogniserConfig(SpeechSettings, AnyTransformerConfig):
    """Convolutions and BLSTMs under CTC and a Transformer decoder of `num_layers`."""

    fusable: ClassVar[bool] = False
    unread: ClassVar[tuple[str, ...]] = (*BRANCHES, *LENGTHS)
    architecture: Literal["joint_recogniser"] = Field(description="CTC and attention (Watanabe et al. 2017)")
    channels: Width = Field(default=32, description="Channels of both 3 x 3 convolutions, of stride 2 in frequency")
    subsampling: Literal[2, 4] = Field(
        default=4, description="Frames per encoder position, from the strides of the convolutions"
    )
    encoder_layers: Width = Field(default=3, description="Residual BLSTM layers with d_model / 2 units per direction")
    encoder_dropout: Probability = Field(default=0.1, description="Dropout of each BLSTM layer's output")
    ctc_share: Number = Field(
        default=0.3, ge=0, le=1, description="Weight of CTC in the loss; the decoder has the rest"
    )

    @model_validator(mode="after")
    def can_be_built(self):
        """Refuse an odd d_model, whose halves are not equally wide, and a table of positions, which frames exceed."""
        if self.positions == "learned":
            raise ValueError("positions: learned is for text: the frames of speech are more than a table has rows")
        if self.d_model % 2:
            raise ValueError(f"d_model {self.d_model} must be even: each direction of the encoder has half of it")
        return self

    @property
    def strides(self) -> tuple[int, int]:
        """Strides of the two convolutions in time; in frequency both have 2."""
        return 2, self.subsampling // 2

    def output_frames(self, frames: Any) -> Any:
        for stride in self.strides:
            frames = -(-frames // stride)
        return frames

    def forward_macs(self, shape: BatchShape) -> float:
        positions, length, bands, inputs, total = shape.src_positions, shape.src_length, self.features, 1, 0.0
        for stride in self.strides:
            positions, length, bands = positions / stride, length / stride, -(-bands // 2)
            total += positions * bands * 9 * inputs * self.channels
            inputs = self.channels
        width = self.d_model
        total += positions * width * (inputs * bands + shape.vocab)
        total += positions * self.encoder_layers * 2 * lstm_macs(width, width // 2)
        both = shape._replace(src_positions=positions, src_length=length)
        encoder_alone = both._replace(tgt_positions=0)
        keys_values = self.num_layers * positions * width * self.num_heads * (self.key_width + self.value_width)
        return total + super().forward_macs(both) - super().forward_macs(encoder_alone) + keys_values

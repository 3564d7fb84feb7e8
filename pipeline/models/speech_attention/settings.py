"""Settings of the attention recogniser."""

from typing import ClassVar, Literal

from pydantic import Field

from pipeline.core.schema import CountOrNone, Width
from pipeline.models.speech_settings import SpeechSettings


class AttentionRecogniserConfig(SpeechSettings):
    """Cold Fusion, section 4.2: the plain Seq2Seq recogniser."""

    samples: ClassVar[bool] = True
    architecture: Literal["speech_attention"] = Field(description="BLSTM encoder, GRU decoder with hybrid attention")
    frame_stacking: Width = Field(default=1, description="Neighbouring frames joined into one input of the encoder")
    encoder_layers: Width = Field(default=6, description="BLSTM layers")
    encoder_width: Width = Field(description="Units of a BLSTM layer, each direction")
    pooled_layers: CountOrNone = Field(
        default=2, description="Max-pooling of stride 2 in time follows each of so many first layers"
    )
    decoder_width: Width = Field(description="Units of the GRU decoder (Table 4: 64 to 960)")
    embedding_width: Width = Field(default=256, description="Width of a character's vector; not printed")
    attention_width: Width = Field(default=256, description="Width in which states are compared; not printed")
    location_filters: Width = Field(default=10, description="k: filters over the previous alignment; not printed")
    location_width: Width = Field(default=51, description="r: encoder positions that a filter spans; not printed")
    gru_reads: Literal["this context", "last context"] = Field(
        default="this context",
        description="Beside y_{t-1}: c_t, asked for by d_{t-1}; or c_{t-1}, so that what asks for c_t has read y_{t-1}",
    )
    task_state: Literal["state", "state and context"] = Field(
        default="state", description="s_t that the output layer, or a fusion, reads: d or [d; c_t]"
    )

    @property
    def frames_a_position(self) -> int:
        """Frames that an encoder position spans."""
        return self.frame_stacking * 2**self.pooled_layers

    @property
    def annotation_width(self) -> int:
        """Of what the attention reads at an encoder position: both directions."""
        return 2 * self.encoder_width

    @property
    def schedule_width(self) -> int:
        return self.decoder_width

    @property
    def state_width(self) -> int:
        return self.decoder_width + (self.annotation_width if self.task_state == "state and context" else 0)

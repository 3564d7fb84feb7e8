"""Settings and FLOPs of the attention recogniser."""

from math import ceil
from typing import ClassVar, Literal

from pydantic import Field

from pipeline.core.schema import CountOrNone, Width
from pipeline.models.settings import BatchShape, SpeechSettings, gru_macs, lstm_macs


class AttentionRecogniserConfig(SpeechSettings):
    """Cold Fusion, section 4.2: the plain Seq2Seq recogniser."""

    samples: ClassVar[bool] = True
    architecture: Literal["speech_attention"] = Field(description="BLSTM encoder, GRU decoder with hybrid attention")
    frame_stacking: Width = Field(default=1, description="Neighbouring frames stacked into one encoder input")
    encoder_layers: Width = Field(default=6, description="BLSTM layers")
    encoder_width: Width = Field(description="Units of a BLSTM layer, each direction")
    pooled_layers: CountOrNone = Field(
        default=2, description="Number of first layers followed by max-pooling of stride 2 in time"
    )
    decoder_width: Width = Field(description="Units of the GRU decoder (Table 4: 64 to 960)")
    embedding_width: Width = Field(default=256, description="Width of a character's vector; not printed")
    attention_width: Width = Field(default=256, description="Hidden width of the attention; not printed")
    location_filters: Width = Field(default=10, description="k: filters over the previous alignment; not printed")
    location_width: Width = Field(
        default=51, description="r: encoder positions that a filter spans; even = one more; not printed"
    )
    gru_reads: Literal["this context", "last context"] = Field(
        default="this context",
        description="Context that the GRU reads with y_{t-1}: c_t by attention from d_{t-1}; or c_{t-1}, c_t from d_t",
    )
    task_state: Literal["state", "state and context"] = Field(
        default="state", description="s_t that the output layer, or a fusion, reads: d or [d; c_t]"
    )

    @property
    def frames_per_position(self) -> int:
        """Frames that an encoder position spans."""
        return self.frame_stacking * 2**self.pooled_layers

    @property
    def annotation_width(self) -> int:
        """Width of an annotation: both directions."""
        return 2 * self.encoder_width

    @property
    def schedule_width(self) -> int:
        """Width of the decoder."""
        return self.decoder_width

    @property
    def state_width(self) -> int:
        """Width of the task state."""
        return self.decoder_width + (self.annotation_width if self.task_state == "state and context" else 0)

    def forward_macs(self, shape: BatchShape) -> float:
        encoder, share = 0.0, self.frame_stacking
        positions, inputs = shape.src_positions / share, self.features * share
        annotation, width = self.annotation_width, self.decoder_width
        for layer in range(self.encoder_layers):
            encoder += 2 * lstm_macs(inputs, self.encoder_width) * positions
            inputs = annotation
            if layer < self.pooled_layers:
                positions, share = positions / 2, share * 2
        keys = positions * annotation * self.attention_width
        span = 2 * (self.location_width // 2) + 1
        attention = ceil(shape.src_length / share) * (self.attention_width * (span + 1) + annotation)
        recurrent, table = width * self.attention_width + gru_macs(annotation, width), 3 * self.embedding_width * width
        step = attention + recurrent + self.state_width * shape.vocab
        return encoder + keys + shape.vocab * table + shape.tgt_positions * step

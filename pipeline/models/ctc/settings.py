"""Settings of the CTC recogniser."""

from typing import Any, Literal

from pydantic import Field

from pipeline.core.schema import Width
from pipeline.models.speech_settings import SpeechSettings

KERNELS = ((11, 41, 2, 2), (11, 21, 1, 2))
"""Width in frames and in features, stride in frames and in features, of the two convolutions."""


class CTCConfig(SpeechSettings):
    """Cold Fusion, Table 3, first row: Deep Speech 2's shape, trained with CTC."""

    architecture: Literal["ctc"] = Field(description="Convolutions, bidirectional GRUs, CTC (Amodei et al. 2015)")
    channels: Width = Field(default=32, description="Channels of both convolutions over time and frequency")
    num_layers: Width = Field(default=5, description="Bidirectional GRU layers")
    hidden_width: Width = Field(default=800, description="Units of a GRU layer, each direction; not printed")

    @property
    def schedule_width(self) -> int:
        return self.hidden_width

    def output_frames(self, frames: Any) -> Any:
        """As many as `CTC.log_probs` returns."""
        for _, _, stride, _ in KERNELS:
            frames = -(-frames // stride)
        return frames

    def check_training(self, training: Any) -> None:
        if training.label_smoothing:
            raise ValueError(
                f"CTC has no label smoothing: training.label_smoothing must be 0, got {training.label_smoothing}"
            )

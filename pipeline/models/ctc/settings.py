"""Settings and FLOPs of the CTC recogniser."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from pipeline.core.schema import Width
from pipeline.models.settings import BRANCHES, LENGTHS, BatchShape, SpeechSettings, gru_macs

KERNELS = ((11, 41, 2, 2), (11, 21, 1, 2))
"""Width in frames and in features, stride in frames and in features, of the two convolutions."""


class CTCConfig(SpeechSettings):
    """Cold Fusion, Table 3, first row: the shape of Deep Speech 2, trained with CTC."""

    unread: ClassVar[tuple[str, ...]] = ("ctc_weight", *BRANCHES, *LENGTHS)
    architecture: Literal["ctc"] = Field(description="Convolutions, bidirectional GRUs, CTC (Amodei et al. 2015)")
    channels: Width = Field(default=32, description="Channels of both convolutions over time and frequency")
    num_layers: Width = Field(default=5, description="Bidirectional GRU layers")
    hidden_width: Width = Field(default=800, description="Units of a GRU layer, each direction; not printed")

    @property
    def schedule_width(self) -> int:
        """Width of a GRU layer."""
        return self.hidden_width

    def output_frames(self, frames: Any) -> Any:
        for _, _, stride, _ in KERNELS:
            frames = -(-frames // stride)
        return frames

    def forward_macs(self, shape: BatchShape) -> float:
        positions, bands, channels, total = shape.src_positions, self.features, 1, 0.0
        for width, height, stride, jump in KERNELS:
            bands_in, positions, bands = bands, positions / stride, -(-bands // jump)
            rows = min(height, bands_in)  # the other rows of the kernel multiply padding
            total += positions * bands * width * rows * channels * self.channels
            channels = self.channels
        inputs = channels * bands
        for _ in range(self.num_layers):
            total += positions * (inputs * self.hidden_width + 2 * gru_macs(self.hidden_width, self.hidden_width))
            inputs = self.hidden_width
        return total + positions * self.hidden_width * shape.vocab

    def check_training(self, training: Any) -> None:
        if training.label_smoothing:
            raise ValueError(
                f"CTC has no label smoothing: training.label_smoothing must be 0, got {training.label_smoothing}"
            )

"""Settings and FLOPs of the character language model."""

from typing import ClassVar, Literal

from pydantic import Field

from pipeline.core.schema import Probability, Width
from pipeline.models.settings import BatchShape, ModelSettings, Reads, gru_macs


class LanguageModelConfig(ModelSettings):
    """Cold Fusion, Table 2: a recurrent model of characters."""

    reads: ClassVar[Reads] = "text"

    architecture: Literal["language_model"] = Field(description="GRU language model (Cold Fusion, Table 2)")
    num_layers: Width = Field(default=3, description="GRU layers")
    embedding_width: Width = Field(default=256, description="Width of a character's vector; not printed")
    hidden_width: Width = Field(description="Units of a GRU layer")
    dropout: Probability = Field(default=0.0, description="Dropout between layers and before the output layer")

    @property
    def schedule_width(self) -> int:
        """Width of a GRU layer."""
        return self.hidden_width

    def forward_macs(self, shape: BatchShape) -> float:
        """Count the multiply-adds of a forward pass over a batch of this shape."""
        widths = [self.embedding_width] + [self.hidden_width] * (self.num_layers - 1)
        character = sum(gru_macs(width, self.hidden_width) for width in widths) + self.hidden_width * shape.vocab
        return shape.tgt_positions * character

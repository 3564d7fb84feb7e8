"""Settings of the character language model."""

from typing import ClassVar, Literal

from pydantic import Field

from pipeline.core.schema import Probability, Width
from pipeline.models.settings import ModelSettings, Reads


class LanguageModelConfig(ModelSettings):
    """Cold Fusion, Table 2: a recurrent model of characters."""

    reads: ClassVar[Reads] = "text"

    architecture: Literal["language_model"] = Field(description="GRU language model (Cold Fusion, Table 2)")
    num_layers: Width = Field(default=3, description="GRU layers")
    embedding_width: Width = Field(default=256, description="Width of a character's vector; not printed")
    hidden_width: Width = Field(description="Units of a GRU layer")
    dropout: Probability = Field(default=0.0, description="Between layers and before the softmax")

    @property
    def schedule_width(self) -> int:
        return self.hidden_width

"""Settings of the character language model."""

from typing import Literal

from pydantic import Field

from pipeline.schema import Closed, Count, Probability


class LanguageModelConfig(Closed):
    """Cold Fusion, Table 2: a recurrent model of characters."""

    architecture: Literal["language_model"] = Field(description="GRU language model (Cold Fusion, Table 2)")
    num_layers: Count = Field(default=3, description="GRU layers")
    embedding_width: Count = Field(default=256, description="Width of a character's vector; not printed")
    hidden_width: Count = Field(description="Units of a GRU layer")
    dropout: Probability = Field(default=0.0, description="Between layers and before the softmax")

"""Settings of the toy."""

from typing import Literal

from pydantic import Field

from pipeline.core.schema import Count
from pipeline.models.settings import BatchShape, ModelSettings


class BagOfWordsConfig(ModelSettings):
    """No paper's."""

    architecture: Literal["bag_of_words"] = Field(description="Last symbol and sum of the source")
    width: Count = Field(description="Of the embeddings")

    @property
    def schedule_width(self) -> int:
        return self.width

    def forward_macs(self, shape: BatchShape) -> float:
        return shape.tgt_positions * self.width * shape.vocab

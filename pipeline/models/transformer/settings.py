"""Settings of the Transformer."""

from typing import Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Positive, Probability, Width
from pipeline.models.settings import ModelSettings


class AnyTransformerConfig(ModelSettings):
    """What every Transformer has."""

    num_layers: Width = Field(description="N: layers per stack")
    d_model: Width = Field(description="Width of embeddings and of every sub-layer's output")
    d_ff: Width = Field(description="Inner width of the feed-forward sub-layer")
    num_heads: Width = Field(description="h: attention heads")
    d_k: Width | None = Field(default=None, description="Key width of a head; null = d_model / num_heads")
    d_v: Width | None = Field(default=None, description="Value width of a head; null = d_model / num_heads")
    dropout: Probability = Field(default=0.1, description="P_drop: sub-layer outputs and embedding sums")
    attention_dropout: Probability = Field(default=0.0, description="Dropout of attention weights")
    relu_dropout: Probability = Field(default=0.0, description="Dropout inside the feed-forward sub-layer")
    attention_init: Positive = Field(default=1.0, description="Factor of the first weights of queries, keys and values")
    feed_forward_init: Positive = Field(default=1.0, description="The same of the feed-forward sub-layer's matrices")
    positions: Literal["sinusoid", "learned"] = Field(default="sinusoid", description="Positions (row E: learned)")
    max_positions: Width = Field(default=256, description="Rows of a learned position table, in subwords")
    tie_embeddings: Literal["three-way", "none"] = Field(
        default="three-way", description="Whether source, target and pre-softmax matrices are one"
    )

    @model_validator(mode="after")
    def heads_divide_width(self):
        if (self.d_k is None or self.d_v is None) and self.d_model % self.num_heads:
            raise ValueError(f"num_heads {self.num_heads} must divide d_model {self.d_model}, or set d_k and d_v")
        return self

    @property
    def schedule_width(self) -> int:
        return self.d_model

    @property
    def family(self) -> str:
        return "transformer"

    @property
    def state_width(self) -> int:
        return self.d_model

    @property
    def source_last(self) -> bool:
        """Whether a decoder layer reads the source after its feed-forward network, not before."""
        return False

    @property
    def key_width(self) -> int:
        return self.d_k or self.d_model // self.num_heads

    @property
    def value_width(self) -> int:
        return self.d_v or self.d_model // self.num_heads


class TransformerConfig(AnyTransformerConfig):
    """Attention Is All You Need, section 3 and Table 3."""

    architecture: Literal["transformer"] = Field(description="Post-norm Transformer (Vaswani et al. 2017)")
    decoder_order: Literal["self-cross-ffn", "self-ffn-cross"] = Field(
        default="self-cross-ffn", description="Order of a decoder layer's sub-layers; the paper's is the first"
    )

    @property
    def source_last(self) -> bool:
        return self.decoder_order == "self-ffn-cross"

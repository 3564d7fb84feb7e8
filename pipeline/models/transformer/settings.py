"""Settings and FLOPs of the Transformer."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Positive, Probability, Width
from pipeline.models.settings import BatchShape, ModelSettings


class AnyTransformerConfig(ModelSettings):
    """Settings that all Transformers share."""

    read_by: ClassVar[dict[str, dict[str, list[str]]]] = {"positions": {"learned": ["max_positions"], "sinusoid": []}}

    num_layers: Width = Field(description="N: layers per stack")
    d_model: Width = Field(description="Width of embeddings and of every sub-layer's output")
    d_ff: Width = Field(description="Inner width of the feed-forward sub-layer")
    num_heads: Width = Field(description="h: attention heads")
    d_k: Width | None = Field(default=None, description="Key width of a head; null = d_model / num_heads")
    d_v: Width | None = Field(default=None, description="Value width of a head; null = d_model / num_heads")
    dropout: Probability = Field(default=0.1, description="P_drop: sub-layer outputs and embedding sums")
    attention_dropout: Probability = Field(default=0.0, description="Dropout of attention weights")
    relu_dropout: Probability = Field(default=0.0, description="Dropout inside the feed-forward sub-layer")
    attention_init: Positive = Field(
        default=1.0, description="Factor of the initial weights of queries, keys and values"
    )
    feed_forward_init: Positive = Field(
        default=1.0, description="Factor of the initial weights of the feed-forward sub-layer"
    )
    positions: Literal["sinusoid", "learned"] = Field(default="sinusoid", description="Positions (row E: learned)")
    max_positions: Width = Field(default=256, description="Rows of a learned position table, in subwords")
    tie_embeddings: Literal["three-way", "none"] = Field(
        default="three-way", description="Share one matrix between source, target and output layer"
    )

    @model_validator(mode="after")
    def heads_divide_width(self):
        """Refuse heads that do not divide the width, unless `d_k` and `d_v` are set."""
        if (self.d_k is None or self.d_v is None) and self.d_model % self.num_heads:
            raise ValueError(f"num_heads {self.num_heads} must divide d_model {self.d_model}, or set d_k and d_v")
        return self

    @property
    def schedule_width(self) -> int:
        """d_model."""
        return self.d_model

    @property
    def family(self) -> str:
        """Transformers and Weighted Transformers are one family."""
        return "transformer"

    @property
    def state_width(self) -> int:
        """d_model."""
        return self.d_model

    @property
    def source_last(self) -> bool:
        """True if a decoder layer attends to the source after its feed-forward network."""
        return False

    @property
    def key_width(self) -> int:
        """d_k."""
        return self.d_k or self.d_model // self.num_heads

    @property
    def value_width(self) -> int:
        """d_v."""
        return self.d_v or self.d_model // self.num_heads

    def forward_macs(self, shape: BatchShape) -> float:
        output, feed_forward = self.output_projection_macs(), 2 * self.d_model * self.d_ff
        return self.stack_macs(shape, encoder=output + feed_forward, decoder=2 * output + feed_forward)

    def output_projection_macs(self) -> int:
        """Count the multiply-adds per position of the output projection of one attention."""
        return self.num_heads * self.value_width * self.d_model

    def stack_macs(self, shape: BatchShape, encoder: float, decoder: float) -> float:
        """Return the multiply-adds of a forward pass of the whole model, padding included.

        Args:
            shape: Sizes of the batch.
            encoder: Multiply-adds per position of an encoder layer, without the attention of its heads.
            decoder: The same of a decoder layer.
        """
        # Heads times width; a branched attention has the same as long as both widths follow from d_model.
        keys, values = self.num_heads * self.key_width, self.num_heads * self.value_width
        self_projections, pair_macs = self.d_model * (2 * keys + values), keys + values
        encoder += self_projections + pair_macs * shape.src_length
        # A decoder query attends to half of its own sequence on average, but the whole square is computed.
        decoder += self_projections + pair_macs * shape.tgt_length + self.d_model * keys + pair_macs * shape.src_length
        per_src = self.num_layers * (encoder + self.d_model * (keys + values))
        per_tgt = self.num_layers * decoder + self.d_model * shape.vocab
        return per_src * shape.src_positions + per_tgt * shape.tgt_positions


class TransformerConfig(AnyTransformerConfig):
    """Attention Is All You Need, section 3 and Table 3."""

    architecture: Literal["transformer"] = Field(description="Post-norm Transformer (Vaswani et al. 2017)")
    decoder_order: Literal["self-cross-ffn", "self-ffn-cross"] = Field(
        default="self-cross-ffn", description="Order of a decoder layer's sub-layers; the paper's is the first"
    )

    @property
    def source_last(self) -> bool:
        """True if a decoder layer attends to the source after its feed-forward network."""
        return self.decoder_order == "self-ffn-cross"

"""Settings of the Weighted Transformer."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Width
from pipeline.models.transformer.settings import AnyTransformerConfig


class WeightedTransformerConfig(AnyTransformerConfig):
    """Weighted Transformer Network, section 3."""

    fusable: ClassVar[bool] = False
    architecture: Literal["weighted_transformer"] = Field(description="Branched attention (Ahmed et al. 2017)")
    num_branches: Width | None = Field(default=None, description="M: branches; null = num_heads")
    ffn_mode: Literal["shared", "split"] = Field(
        default="shared", description="All branches share one full-width network, or each owns d_ff / M units"
    )
    normalisation: Literal["projection", "softmax"] = Field(
        default="projection", description="How kappa and alpha are kept on the simplex"
    )
    weights: Literal["learned", "random"] = Field(default="learned", description="kappa, alpha in training")
    merged: bool = Field(default=False, description="One variable serves as both kappa and alpha")
    top_k: Width | None = Field(default=None, description="Only the k heaviest branches are summed; null = all")
    branched_attention: Literal["self", "cross"] = Field(
        default="self", description="Which attention of a decoder layer is branched"
    )
    residuals: Literal["sub-layers", "block"] = Field(
        default="sub-layers",
        description="A residual connection and normalisation after each of attention and network, the first inside the "
        "branches, or one around both",
    )
    branch_scale: Literal["one", "weights", "start"] = Field(
        default="one", description="As printed; or kappa and alpha, or W^O and W_2 at the start, M times as large"
    )

    @model_validator(mode="after")
    def branches_divide_width(self):
        if self.ffn_mode == "split" and self.d_ff % self.branches:
            raise ValueError(f"num_branches {self.branches} must divide d_ff {self.d_ff} when ffn_mode is split")
        if (self.d_k is None or self.d_v is None) and self.d_model % self.branches:
            raise ValueError(f"num_branches {self.branches} must divide d_model {self.d_model}, or set d_k and d_v")
        if self.top_k is not None and self.top_k > self.branches:
            raise ValueError(f"top_k {self.top_k} exceeds the {self.branches} branches")
        if self.residuals == "sub-layers" and self.merged and self.weights == "random":
            raise ValueError("merged weights that are random need residuals: block, where they are drawn once a pass")
        return self

    @property
    def branches(self) -> int:
        return self.num_branches or self.num_heads

    def scaled(self, what: Literal["weights", "start"]) -> int:
        """By what kappa and alpha, or the first W^O and W_2, are multiplied."""
        return self.branches if self.branch_scale == what else 1

    @property
    def source_last(self) -> bool:
        return self.branched_attention == "self"

    @property
    def branch_schedule_width(self) -> float:
        """Section 4.1: d_model / N."""
        return self.d_model / self.num_layers

    def check_training(self, training: Any) -> None:
        if training.branch_warmup_steps is None:
            raise ValueError("training.branch_warmup_steps is missing; the paper has 400")

"""Settings and FLOPs of the Weighted Transformer."""

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Width
from pipeline.models.settings import BatchShape
from pipeline.models.transformer.settings import AnyTransformerConfig


class WeightedTransformerConfig(AnyTransformerConfig):
    """Settings of the Weighted Transformer (section 3)."""

    fusable: ClassVar[bool] = False
    unread: ClassVar[tuple[str, ...]] = ("ctc_weight", "word_bonus")
    architecture: Literal["weighted_transformer"] = Field(description="Branched attention (Ahmed et al. 2017)")
    num_branches: Width | None = Field(default=None, description="M: branches; null = num_heads")
    ffn_mode: Literal["shared", "split"] = Field(
        default="shared", description="All branches share one full-width network, or each owns d_ff / M units"
    )
    normalisation: Literal["projection", "softmax"] = Field(
        default="projection", description="Method that keeps kappa and alpha on the simplex"
    )
    weights: Literal["learned", "random"] = Field(
        default="learned",
        description="Branch weights kappa and alpha in training: learned, or drawn at random in every forward pass",
    )
    merged: bool = Field(default=False, description="One variable serves as both kappa and alpha")
    paired_layers: bool = Field(
        default=False, description="The n-th layers of encoder and decoder share their kappa and alpha"
    )
    branch_start: Literal["simplex", "projected"] = Field(
        default="simplex",
        description="Initial kappa and alpha. simplex: uniform in (0, 1), over their sum; projected: uniform within "
        "±sqrt(3 / d_model), as weights of d_model inputs, and then projected onto the simplex",
    )
    top_k: Width | None = Field(default=None, description="Only the k heaviest branches are summed; null = all")
    branched_attention: Literal["self", "cross"] = Field(
        default="self", description="Which attention of a decoder layer is branched"
    )
    residuals: Literal["sub-layers", "block"] = Field(
        default="sub-layers",
        description="sub-layers: residual connections and normalisations after the attention, inside the branches, and "
        "after the network; block: one around both",
    )
    branch_scale: Literal["one", "weights", "start"] = Field(
        default="one",
        description="weights: kappa and alpha times M, except in the sum of residuals; start: the initial W^O and W_2 "
        "times M; one: as printed",
    )

    @model_validator(mode="after")
    def branches_divide_width(self):
        """Refuse settings of the branches that are not consistent."""
        if self.ffn_mode == "split" and self.d_ff % self.branches:
            raise ValueError(f"num_branches {self.branches} must divide d_ff {self.d_ff} when ffn_mode is split")
        if (self.d_k is None or self.d_v is None) and self.d_model % self.branches:
            raise ValueError(f"num_branches {self.branches} must divide d_model {self.d_model}, or set d_k and d_v")
        if self.top_k is not None and self.top_k > self.branches:
            raise ValueError(f"top_k {self.top_k} exceeds num_branches {self.branches}")
        if self.residuals == "sub-layers" and self.merged and self.weights == "random":
            raise ValueError("merged weights that are random need residuals: block, which draws them once per pass")
        if self.branch_start == "projected" and self.normalisation == "softmax":
            raise ValueError("branch_start: projected needs normalisation: projection; it can set weights to 0")
        if self.paired_layers and self.weights == "random":
            raise ValueError("paired_layers needs weights: learned; random weights are drawn for each layer")
        return self

    @property
    def branches(self) -> int:
        """Number of branches M."""
        return self.num_branches or self.num_heads

    def scale_factor(self, what: Literal["weights", "start"]) -> int:
        """Return M if `branch_scale` is `what` (kappa and alpha, or the initial W^O and W_2), else 1."""
        return self.branches if self.branch_scale == what else 1

    @property
    def source_last(self) -> bool:
        """True if a decoder layer attends to the source after its feed-forward network."""
        return self.branched_attention == "self"

    @property
    def branch_schedule_width(self) -> float:
        """d_model / N, the width in the learning-rate schedule of the branch weights (section 4.1)."""
        return self.d_model / self.num_layers

    def forward_macs(self, shape: BatchShape) -> float:
        branched = self.branched_macs()
        return self.stack_macs(shape, encoder=branched, decoder=branched + self.output_projection_macs())

    def branched_macs(self) -> int:
        """Count the multiply-adds per position of eq. 6 and 7.

        With a residual connection inside the branches, W^{O_i} and W_1 are applied one after the other. Without it,
        W^{O_i} W_1 is formed beforehand (model.py).

        Returns:
            Multiply-adds of the branched output, without the attention of its heads.
        """
        values = self.d_v or self.d_model // self.branches
        copies, outer = self.branches if self.ffn_mode == "shared" else 1, self.d_ff * self.d_model
        if self.residuals == "sub-layers":
            sums = self.branches * self.d_model + (self.branches * self.d_ff if copies > 1 else 0)
            return self.branches * values * self.d_model + copies * self.d_model * self.d_ff + outer + sums
        return copies * values * self.d_ff + outer

    def check_training(self, training: Any) -> None:
        if training.branch_warmup_steps is None:
            raise ValueError("training.branch_warmup_steps is missing; set it (400 in the paper)")

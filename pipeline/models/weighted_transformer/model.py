"""The Weighted Transformer: attention heads as weighted branches (Ahmed, Keskar & Socher 2017, section 3).

    bhead_i = head_i W^{O_i} · kappa_i                                        (6)
    BranchedAttention(Q, K, V) = sum_i alpha_i · FFN(bhead_i)                 (7)

with kappa and alpha on the simplex. The paper does not say where residual connections and normalisations are
(`readings` in workflow/papers/weighted/paper.yaml). With `residuals: sub-layers`, each sub-layer ends in a residual
connection and a normalisation LN. The first LN is inside the branches, which share its weights:

    y_i = LN(x + Dropout(bhead_i)),   LN(sum_i alpha_i y_i + Dropout(sum_i alpha_i FFN(y_i)))

With `residuals: block`, one residual connection and normalisation surround eq. 7. Then no non-linearity separates
W^{O_i} and W_1, so W^{O_i} W_1 kappa_i is computed first, from parameters only. In both forms alpha_i scales the input
of W_2.

Dimensions: B sentences, T positions, M branches, D d_model, d_v width of a head, F hidden units of one branch.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models import kernels
from pipeline.models.kernels import operators as kernel, relu_layers
from pipeline.models.kernels.gpu import fused
from pipeline.models.layers.regularisation import relu_dropout
from pipeline.models.transformer import multi_head_attention as attention
from pipeline.models.transformer.layers import DecoderLayer, EncoderLayer
from pipeline.models.transformer.model import Transformer
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig


class BranchedOutput(nn.Module):
    """Eq. 6 and 7, in place of the output projection W^O of a branched attention.

    It contains the feed-forward network of the layer. With `ffn_mode` split, branch i owns d_ff / M units, i.e. rows i
    of `inner` and columns i of `outer`. With shared, every branch runs the whole network. One bias b_2 serves all
    branches: sum alpha_i b_2 = b_2 on the simplex.
    """

    def __init__(self, config: WeightedTransformerConfig):
        super().__init__()
        self.config = config
        self.dropout, self.split = config.relu_dropout, config.ffn_mode == "split"
        self.inner_residual = config.residuals == "sub-layers"
        branches = config.branches
        self.output = attention.projection(
            branches * branch_heads(config).value_width, config.d_model, branches, nn.Linear
        )
        networks, scale = branches if self.split else 1, config.feed_forward_init
        self.inner = attention.projection(config.d_model, config.d_ff, kind=nn.Linear, scale=scale)
        self.outer = attention.projection(config.d_ff, config.d_model, networks, nn.Linear, scale)
        self.inner.bias = nn.Parameter(torch.zeros(config.d_ff))
        self.outer.bias = nn.Parameter(torch.zeros(config.d_model))
        self.kappa = nn.Parameter(self.to_parameter(initial_weights(config)))
        self.alpha = None if config.merged else nn.Parameter(self.to_parameter(initial_weights(config)))
        with torch.no_grad():
            self.output.weight *= config.scale_factor("start")
            self.outer.weight *= config.scale_factor("start")

    def branch_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of kappa and, unless merged, alpha."""
        return [self.kappa] if self.alpha is None else [self.kappa, self.alpha]

    def to_parameter(self, weights: Tensor) -> Tensor:
        """Return the parameter (M,) for a point of the simplex `weights` (M,): logits if a softmax normalises them."""
        return weights.log() if self.config.normalisation == "softmax" else weights

    def branch_weights(self) -> tuple[Tensor, Tensor]:
        """Return kappa and alpha (M,) of this forward pass; alpha after the restriction to the `top_k` largest."""
        weights: list[Tensor] = [*self.branch_parameters()]
        if self.config.weights == "random":
            # Sampled in every forward pass of training; evaluation uses their expectation.
            weights = [self.sample_weights() for _ in weights]
        elif self.config.normalisation == "softmax":
            weights = [F.softmax(parameter, dim=0) for parameter in weights]
        return weights[0], keep_largest(weights[-1], self.config.top_k)

    def sample_weights(self) -> Tensor:
        """Return a point of the simplex (M,): random in training, uniform in evaluation."""
        if not self.training:
            return torch.full_like(self.kappa, 1 / len(self.kappa))
        return random_weights(len(self.kappa), device=self.kappa.device)

    def outputs(self, kappa: Tensor) -> Tensor:
        """Compute kappa_i W^{O_i} of each branch, shape (M, d_v, D), from `kappa` (M,)."""
        kappa = kappa * self.config.scale_factor("weights")
        return self.output.weight.unflatten(1, (len(kappa), -1)).permute(1, 2, 0) * kappa[:, None, None]

    def inner_layer(self) -> tuple[Tensor, Tensor]:
        """Return W_1 (D, F) and b_1 (F,); with `ffn_mode` split, (M, D, F) and (M, 1, F)."""
        weight, bias, branches = self.inner.weight, self.inner.bias, self.config.branches
        if self.split:
            weight, bias = weight.unflatten(0, (branches, -1)), bias.unflatten(0, (branches, 1, -1))
        return weight.transpose(-1, -2), bias

    def forward(self, context: Tensor) -> Tensor:
        """Apply eq. 6 and, with `residuals: block`, eq. 7.

        Args:
            context: Output of the heads, shape (B, T, M, d_v).

        Returns:
            bhead_i (M, B, T, D), or with `residuals: block` the result of eq. 7 (B, T, D).
        """
        kappa, alpha = self.branch_weights()
        batch, length, _, _ = context.shape
        heads, outputs = context.permute(2, 0, 1, 3).flatten(1, 2), self.outputs(kappa)
        if self.inner_residual:
            return torch.bmm(heads, outputs).unflatten(1, (batch, length))
        weight, bias = self.inner_layer()
        hidden = torch.baddbmm(bias, heads, torch.matmul(outputs, weight))
        return self.sum_branches(hidden, alpha).unflatten(0, (batch, length))

    def network(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Apply the feed-forward network to the branches, and sum both its input and its output over them.

        Args:
            y: Normalised branches y_i, shape (M, B, T, D).

        Returns:
            sum_i alpha_i y_i and sum_i alpha_i FFN(y_i), both (B, T, D).
        """
        alpha, rows, (weight, bias) = self.branch_weights()[1], y.flatten(1, 2), self.inner_layer()
        if not self.split and not (self.training and self.dropout) and fused(rows):
            scaled = alpha * self.config.scale_factor("weights")
            hidden = relu_layers.summed_branches(rows, weight.T, bias, scaled)
            output = F.linear(hidden, self.outer.weight, self.outer.bias * scaled.sum())
            return weighted_sum(alpha, y), output.unflatten(0, y.shape[1:3])
        hidden = torch.baddbmm(bias, rows, weight) if self.split else F.linear(rows, weight.T, bias)
        return weighted_sum(alpha, y), self.sum_branches(hidden, alpha).unflatten(0, y.shape[1:3])

    def sum_branches(self, hidden: Tensor, alpha: Tensor) -> Tensor:
        """Compute sum_i alpha_i (ReLU(hidden_i) W_2 + b_2), (B T, D), of `hidden` (M, B T, F), `alpha` (M,)."""
        alpha = alpha * self.config.scale_factor("weights")
        hidden = relu_dropout(hidden, self.dropout if self.training else 0.0)
        if self.split:
            hidden = hidden.transpose(0, 1).flatten(1)
            outer = self.outer.weight * alpha.repeat_interleave(hidden.shape[1] // len(alpha))
        else:
            hidden, outer = weighted_sum(alpha, hidden), self.outer.weight
        return F.linear(hidden, outer, self.outer.bias * alpha.sum())


class WeightedTransformer(Transformer):
    """A Transformer with a branched attention in every layer.

    The branched attention contains the feed-forward network of the layer. In a decoder layer the attention over the
    target or over the source is branched (`branched_attention`).

    Args:
        config: Settings of the Transformer and of its branches.
        src_vocab: Rows of the source embedding.
        tgt_vocab: V.
    """

    config: WeightedTransformerConfig

    def __init__(self, config: WeightedTransformerConfig, src_vocab: int, tgt_vocab: int):
        super().__init__(config, src_vocab, tgt_vocab)
        self.blocks = {name: module for name, module in self.named_modules() if isinstance(module, BranchedOutput)}
        if config.paired_layers:
            self.pair_layers()

    def pair_layers(self) -> None:
        """Let each decoder layer use kappa and alpha of the encoder layer of the same number."""
        blocks = [*self.blocks.values()]
        for encoder, decoder in zip(blocks[: self.config.num_layers], blocks[self.config.num_layers :], strict=True):
            decoder.kappa, decoder.alpha = encoder.kappa, encoder.alpha

    def encoder_layer(self) -> EncoderLayer:
        config, block = self.config, BranchedOutput(self.config)
        return EncoderLayer(
            config,
            attention.SelfAttention(branch_heads(config), block),
            block.network if block.inner_residual else None,
        )

    def decoder_layer(self) -> DecoderLayer:
        config = self.config
        if config.branched_attention == "cross":
            self_attention = attention.SelfAttention(config, attention.OutputProjection(config))
            block = BranchedOutput(config)
            cross_attention = attention.CrossAttention(branch_heads(config), block)
        else:
            block = BranchedOutput(config)
            self_attention = attention.SelfAttention(branch_heads(config), block)
            cross_attention = attention.CrossAttention(config, attention.OutputProjection(config))
        return DecoderLayer(config, self_attention, cross_attention, block.network if block.inner_residual else None)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        branch_weights = {id(own): own for block in self.blocks.values() for own in block.branch_parameters()}
        weights = [parameter for parameter in self.parameters() if id(parameter) not in branch_weights]
        return {"weights": weights, "branch_weights": [*branch_weights.values()]}

    @torch.no_grad()
    def after_step(self, frozen: bool, skip: Tensor | None = None) -> None:
        """Project every kappa and alpha onto the simplex, all blocks at once; see `Seq2Seq.after_step`."""
        if frozen or self.config.normalisation == "softmax" or self.config.weights == "random":
            return
        weights: list[Tensor] = [*self.parameter_groups()["branch_weights"]]
        projected = project_to_simplex(points := torch.stack(weights))
        if skip is not None:  # projected again, a point can change by rounding
            projected = projected.lerp(points, skip)
        torch._foreach_copy_(weights, list(projected.unbind()))

    @torch.no_grad()
    def monitors(self) -> dict[str, list[float]]:
        """Return M branch weights under each of "encoder.0.kappa", "encoder.0.alpha", …."""
        values: dict[str, list[float]] = {}
        for name, block in self.blocks.items():
            layer, names = ".".join(name.split(".")[:2]), ["kappa", "alpha"][: len(block.branch_parameters())]
            values |= {f"{layer}.{k}": v.tolist() for k, v in zip(names, block.branch_weights(), strict=False)}
        return values

    @torch.no_grad()
    def replace_branch_weights(self, kind: Literal["learned", "random", "uniform"], seed: int) -> None:
        if kind == "learned":
            return
        generator = torch.Generator().manual_seed(seed)
        for block in self.blocks.values():
            for parameter in block.branch_parameters():
                sample = random_weights(len(parameter), generator)
                chosen = sample if kind == "random" else torch.full_like(sample, 1 / len(sample))
                parameter.copy_(block.to_parameter(chosen))


def weighted_sum(alpha: Tensor, x: Tensor) -> Tensor:
    """Compute sum_i alpha_i x_i, shape (…), of `alpha` (M,) and `x` (M, …) without storing alpha_i x_i."""
    if fused(x):
        return relu_layers.weighted_sum(alpha, x)
    if x.is_cuda and kernels.enabled():
        return kernel.weighted_sum(alpha, x)
    return (alpha.to(x.dtype) @ x.flatten(1)).unflatten(0, x.shape[1:])


def branch_heads(config: WeightedTransformerConfig) -> WeightedTransformerConfig:
    """Return the settings of an attention whose heads are the M branches."""
    return config.model_copy(update={"num_heads": config.branches})


def build(config: WeightedTransformerConfig, vocab_sizes: tuple[int, int]) -> WeightedTransformer:
    """Return a model with random weights; see `build_model`."""
    return WeightedTransformer(config, *vocab_sizes)


def initial_weights(config: WeightedTransformerConfig) -> Tensor:
    """Draw initial kappa or alpha, a point of the simplex (M,), as `branch_start` says."""
    if config.branch_start == "simplex":
        return random_weights(config.branches)
    bound = math.sqrt(3 / config.d_model)
    return project_to_simplex(torch.empty(config.branches).uniform_(-bound, bound))


def random_weights(
    branches: int, generator: torch.Generator | None = None, device: torch.device | None = None
) -> Tensor:
    """Draw M values from U(0, 1) and divide them by their sum.

    Args:
        branches: M.
        generator: Source of random numbers; None is torch's global generator.
        device: Device of the values; None is torch's default.

    Returns:
        Shape (M,), a point of the simplex.
    """
    draws = torch.rand(branches, generator=generator, device=device)
    return draws / draws.sum()


def keep_largest(weights: Tensor, top_k: int | None) -> Tensor:
    """Set all but the `top_k` largest `weights` (M,) to zero without rescaling the others; None keeps all."""
    if top_k is None:
        return weights
    return weights * torch.zeros_like(weights).scatter(0, weights.topk(top_k).indices, 1.0)


def project_to_simplex(points: Tensor) -> Tensor:
    """Project each row onto the simplex {w >= 0, sum w = 1} (Chen & Ye 2011).

    With u sorted in descending order:

        rho   = max{j : u_j - (sum_{r<=j} u_r - 1) / j > 0}
        theta = (sum_{r<=rho} u_r - 1) / rho
        w     = max(u - theta, 0)

    Args:
        points: Shape (…, M).

    Returns:
        Nearest point of the simplex to each row, shape (…, M).
    """
    points = points - points.amax(dim=-1, keepdim=True)  # same projection, smaller rounding errors
    ordered = points.sort(dim=-1, descending=True).values
    excess = running_sums(ordered) - 1
    ranks = torch.arange(1, points.shape[-1] + 1, dtype=points.dtype, device=points.device)
    rho = (ordered - excess / ranks > 0).sum(dim=-1, keepdim=True)
    theta = excess.gather(-1, rho - 1) / rho
    return (points - theta).clamp_min(0)


def running_sums(x: Tensor) -> Tensor:
    """Return the cumulative sums (…, M) of the last dimension of `x` (…, M), deterministically on a GPU too."""
    if not x.is_cuda:
        return x.cumsum(dim=-1)
    return (x.unsqueeze(-1) * torch.ones(x.shape[-1], x.shape[-1], dtype=x.dtype, device=x.device).triu()).sum(dim=-2)

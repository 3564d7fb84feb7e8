"""The Weighted Transformer (Ahmed, Keskar & Socher 2017, section 3): attention heads as weighted branches.

    bhead_i = head_i W^{O_i} · kappa_i                                        (6)
    BranchedAttention(Q, K, V) = sum_i alpha_i · FFN(bhead_i)                 (7)

with kappa and alpha on the simplex. Where residual connections and normalisations stand is a matter of reading
(`readings` in workflow/papers/weighted/paper.yaml). With `residuals: sub-layers` there is one after each sub-layer, the
first inside the branches and shared by them:

    y_i = LN(x + Dropout(bhead_i)),   LN(sum_i alpha_i y_i + Dropout(sum_i alpha_i FFN(y_i)))

With `residuals: block` there is one around eq. 7. Nothing non-linear then lies between W^{O_i} and W_1, so that
W^{O_i} W_1 kappa_i is formed first, a product of parameters only. In both alpha_i scales what W_2 reads.

Dimensions: B sentences, T positions, M branches, D d_model, F hidden units of one branch.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

from pipeline.models.layers.dropout import relu_dropout
from pipeline.models.transformer.model import DecoderLayer, EncoderLayer, Transformer
from pipeline.models.transformer.multi_head_attention import CrossAttention, Mix, SelfAttention, projection
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from pipeline.models.weighted_transformer.simplex import project_to_simplex


class BranchedMix(nn.Module):
    """Eq. 6 and 7: what a branched attention does with its heads in place of W^O, and the layer's feed-forward network.

    split: branch i owns d_ff / M units, i.e. rows i of `inner` and columns i of `outer`; shared: every branch runs the
    whole network. One bias b_2 serves all branches: sum alpha_i b_2 = b_2 on the simplex.
    """

    def __init__(self, config: WeightedTransformerConfig):
        super().__init__()
        self.config = config
        self.dropout, self.split = config.relu_dropout, config.ffn_mode == "split"
        self.kept = config.residuals == "sub-layers"
        branches = config.branches
        self.output = projection(branches * branch_heads(config).value_width, config.d_model, branches, nn.Linear)
        own, scale = branches if self.split else 1, config.feed_forward_init
        self.inner = projection(config.d_model, config.d_ff, kind=nn.Linear, scale=scale)
        self.outer = projection(config.d_ff, config.d_model, own, nn.Linear, scale)
        self.inner.bias = nn.Parameter(torch.zeros(config.d_ff))
        self.outer.bias = nn.Parameter(torch.zeros(config.d_model))
        self.kappa = nn.Parameter(self.to_parameter(random_weights(config.branches)))
        self.alpha = None if config.merged else nn.Parameter(self.to_parameter(random_weights(config.branches)))
        with torch.no_grad():
            self.output.weight *= config.scaled("start")
            self.outer.weight *= config.scaled("start")

    def branch_parameters(self) -> list[nn.Parameter]:
        return [self.kappa] if self.alpha is None else [self.kappa, self.alpha]

    def to_parameter(self, weights: Tensor) -> Tensor:
        """The parameter that stands for `weights` (a point of the simplex)."""
        return weights.log() if self.config.normalisation == "softmax" else weights

    def branch_weights(self) -> tuple[Tensor, Tensor]:
        """(kappa, alpha), each (M,)."""
        weights: list[Tensor] = [*self.branch_parameters()]
        if self.config.weights == "random":
            # Sampled anew in every forward pass; out of training their expectation.
            weights = [self.random_in_training() for _ in weights]
        elif self.config.normalisation == "softmax":
            weights = [F.softmax(parameter, dim=0) for parameter in weights]
        return weights[0], keep_largest(weights[-1], self.config.top_k)

    def random_in_training(self) -> Tensor:
        if not self.training:
            return torch.full_like(self.kappa, 1 / len(self.kappa))
        return random_weights(len(self.kappa), device=self.kappa.device)

    def outputs(self, kappa: Tensor) -> Tensor:
        """kappa_i W^{O_i} as (M, d_v, D)."""
        kappa = kappa * self.config.scaled("weights")
        return self.output.weight.unflatten(1, (len(kappa), -1)).permute(1, 2, 0) * kappa[:, None, None]

    def inner_layer(self) -> tuple[Tensor, Tensor]:
        """W_1 as (D, F) and b_1, or each branch's part of them, (M, D, F) and (M, 1, F)."""
        weight, bias, branches = self.inner.weight, self.inner.bias, self.config.branches
        if self.split:
            weight, bias = weight.unflatten(0, (branches, -1)), bias.unflatten(0, (branches, 1, -1))
        return weight.transpose(-1, -2), bias

    def forward(self, context: Tensor) -> Tensor:
        """context (B, T, M, d_v), what each head has read -> bhead_i (M, B, T, D), or eq. 7 of them (B, T, D)"""
        kappa, alpha = self.branch_weights()
        batch, length, _, _ = context.shape
        heads, outputs = context.permute(2, 0, 1, 3).flatten(1, 2), self.outputs(kappa)
        if self.kept:
            return torch.bmm(heads, outputs).unflatten(1, (batch, length))
        weight, bias = self.inner_layer()
        hidden = torch.baddbmm(bias, heads, torch.matmul(outputs, weight))
        return self.summed(hidden, alpha).unflatten(0, (batch, length))

    def network(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """y (M, B, T, D) -> sum_i alpha_i y_i and sum_i alpha_i FFN(y_i), both (B, T, D)"""
        alpha, rows, (weight, bias) = self.branch_weights()[1], y.flatten(1, 2), self.inner_layer()
        hidden = torch.baddbmm(bias, rows, weight) if self.split else F.linear(rows, weight.T, bias)
        return weighted_sum(alpha, y), self.summed(hidden, alpha).unflatten(0, y.shape[1:3])

    def summed(self, hidden: Tensor, alpha: Tensor) -> Tensor:
        """hidden (M, B T, F), before the ReLU -> sum_i alpha_i (ReLU(hidden_i) W_2 + b_2), (B T, D)"""
        alpha = alpha * self.config.scaled("weights")
        hidden = relu_dropout(hidden, self.dropout if self.training else 0.0)
        if self.split:
            hidden = hidden.transpose(0, 1).flatten(1)
            outer = self.outer.weight * alpha.repeat_interleave(hidden.shape[1] // len(alpha))
        else:
            hidden, outer = weighted_sum(alpha, hidden), self.outer.weight
        return F.linear(hidden, outer, self.outer.bias * alpha.sum())


class WeightedTransformer(Transformer):
    """A Transformer whose layers' feed-forward networks moved into branched attentions: one in every encoder layer,
    and one in every decoder layer, over the target or over the source (`branched_attention`)."""

    config: WeightedTransformerConfig

    def __init__(self, config: WeightedTransformerConfig, src_vocab: int, tgt_vocab: int):
        super().__init__(config, src_vocab, tgt_vocab)
        self.blocks = {name: module for name, module in self.named_modules() if isinstance(module, BranchedMix)}

    def encoder_layer(self) -> EncoderLayer:
        config, block = self.config, BranchedMix(self.config)
        return EncoderLayer(config, SelfAttention(branch_heads(config), block), block.network if block.kept else None)

    def decoder_layer(self) -> DecoderLayer:
        config = self.config
        if config.branched_attention == "cross":
            over_target, block = SelfAttention(config, Mix(config)), BranchedMix(config)
            over_source = CrossAttention(branch_heads(config), block)
        else:
            block = BranchedMix(config)
            over_target = SelfAttention(branch_heads(config), block)
            over_source = CrossAttention(config, Mix(config))
        return DecoderLayer(config, over_target, over_source, block.network if block.kept else None)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        branch_weights = [parameter for block in self.blocks.values() for parameter in block.branch_parameters()]
        chosen = {id(parameter) for parameter in branch_weights}
        weights = [parameter for parameter in self.parameters() if id(parameter) not in chosen]
        return {"weights": weights, "branch_weights": branch_weights}

    @torch.no_grad()
    def after_step(self, frozen: bool) -> None:
        """Project every kappa and alpha onto the simplex, all blocks at once."""
        if frozen or self.config.normalisation == "softmax" or self.config.weights == "random":
            return
        weights: list[Tensor] = [*self.parameter_groups()["branch_weights"]]
        torch._foreach_copy_(weights, list(project_to_simplex(torch.stack(weights)).unbind()))

    @torch.no_grad()
    def monitors(self) -> dict[str, list[float]]:
        """{"encoder.0.kappa": (M,), "encoder.0.alpha": …}: the branch weights of every block, by stack and layer."""
        found: dict[str, list[float]] = {}
        for name, block in self.blocks.items():
            layer, names = ".".join(name.split(".")[:2]), ["kappa", "alpha"][: len(block.branch_parameters())]
            found |= {f"{layer}.{k}": v.tolist() for k, v in zip(names, block.branch_weights(), strict=False)}
        return found

    @torch.no_grad()
    def replace_branch_weights(self, kind: Literal["learned", "random", "uniform"], seed: int) -> None:
        """Table 3: independent random draws, fixed by `seed`, or 1/M; or leave them as they are."""
        if kind == "learned":
            return
        generator = torch.Generator().manual_seed(seed)
        for block in self.blocks.values():
            for parameter in block.branch_parameters():
                sample = random_weights(len(parameter), generator)
                chosen = sample if kind == "random" else torch.full_like(sample, 1 / len(sample))
                parameter.copy_(block.to_parameter(chosen))


class WeightedSum(Function):
    """Sum of weighted branches, whose gradient is a product of numbers in place of a product of matrices.

    cuBLAS runs the outer product of alpha and the gradient as hundreds of small kernels: a sixth of a step.
    """

    @staticmethod
    def forward(ctx, alpha: Tensor, x: Tensor) -> Tensor:
        """Sum alpha (M,) times x (M, …)."""
        ctx.save_for_backward(alpha, x)
        return (alpha.to(x.dtype) @ x.flatten(1)).unflatten(0, x.shape[1:])

    @staticmethod
    def backward(ctx, grad: Tensor):
        alpha, x = ctx.saved_tensors
        weights = alpha.to(grad.dtype).view(-1, *[1] * grad.dim())
        return (x.flatten(1) @ grad.flatten().to(x.dtype)).to(alpha.dtype), (weights * grad).to(x.dtype)


def weighted_sum(alpha: Tensor, x: Tensor) -> Tensor:
    """Return sum_i alpha_i x_i of alpha (M,) and x (M, …), without a weighted copy of x."""
    if x.is_cuda:
        return WeightedSum.apply(alpha, x)
    return (alpha.to(x.dtype) @ x.flatten(1)).unflatten(0, x.shape[1:])


def branch_heads(config: WeightedTransformerConfig) -> WeightedTransformerConfig:
    """The settings of an attention whose M branches stand in the place of the h heads."""
    return config.model_copy(update={"num_heads": config.branches})


def random_weights(
    branches: int, generator: torch.Generator | None = None, device: torch.device | None = None
) -> Tensor:
    """U(0, 1) draws divided by their sum, (M,)."""
    draws = torch.rand(branches, generator=generator, device=device)
    return draws / draws.sum()


def keep_largest(weights: Tensor, top_k: int | None) -> Tensor:
    """`weights` (M,) with all but the `top_k` largest at zero; the rest is not rescaled."""
    if top_k is None:
        return weights
    return weights * torch.zeros_like(weights).scatter(0, weights.topk(top_k).indices, 1.0)


def build(config: WeightedTransformerConfig, vocab_sizes: tuple[int, int]) -> WeightedTransformer:
    return WeightedTransformer(config, *vocab_sizes)

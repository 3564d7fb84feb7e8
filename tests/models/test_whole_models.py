"""Whole models against the equations of their papers, one sentence and one head at a time, in double precision."""

import math

import pytest
import torch
from small_models import CONFIGS, VOCAB, pairs
from torch import Tensor

from pipeline.models.architectures import build_model
from pipeline.models.settings import PAD
from pipeline.models.transformer.model import Transformer

NORMS = {"attention": "attention_norm", "self_attention": "self_norm", "cross_attention": "cross_norm"}


class Equations:
    """Attention Is All You Need, section 3; of branches, Weighted Transformer, section 3, with residuals kept."""

    def __init__(self, model: Transformer):
        self.config = model.config
        self.weights = {name: weight.double() for name, weight in model.state_dict().items()}

    def log_probs(self, source: Tensor, target: Tensor) -> Tensor:
        """Return log p of each symbol at each position (T, V), given source (S,) and decoder inputs (T,)."""
        everywhere, earlier = torch.ones(len(target), len(source)), torch.ones(len(target), len(target)).tril()
        x, y = self.embedded(source), self.embedded(target)
        for layer in range(self.config.num_layers):
            x = self.attended(f"encoder.{layer}", "attention", x, x, torch.ones(len(source), len(source)))
            x = self.fed(f"encoder.{layer}", "attention", x)
        for layer in range(self.config.num_layers):
            name = f"decoder.{layer}"
            y = self.attended(name, "self_attention", y, y, earlier)
            y = self.fed(name, "self_attention", y) if self.config.source_last else y
            y = self.attended(name, "cross_attention", y, x, everywhere)
            y = y if self.config.source_last else self.fed(name, "cross_attention", y)
        return (y @ self.weights["tgt_embedding.weight"].T).log_softmax(-1)

    def embedded(self, symbols: Tensor) -> Tensor:
        """Return E sqrt(d) + PE, (n, d)."""
        width = self.config.d_model
        angles = [[n / 10000 ** (i // 2 * 2 / width) for i in range(width)] for n in range(len(symbols))]
        waves = [[math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(row)] for row in angles]
        return self.weights["src_embedding.weight"][symbols] * math.sqrt(width) + torch.tensor(waves).double()

    def attended(self, layer: str, name: str, x: Tensor, memory: Tensor, visible: Tensor) -> Tensor:
        """Return LN(x + MultiHead), (n, d), or with branches LN(x + kappa_i head_i W^{O_i}) of each, (M, n, d)."""
        heads, norm = self.heads(f"{layer}.{name}", x, memory, visible), f"{layer}.{NORMS[name]}"
        output = self.weights[f"{layer}.{name}.mix.output.weight"].T
        if (kappa := self.weights.get(f"{layer}.{name}.mix.kappa")) is None:
            return self.normalised(norm, x + torch.cat(heads, dim=-1) @ output)
        own = zip(kappa, heads, output.chunk(len(heads)), strict=True)
        return torch.stack([self.normalised(norm, x + weight * head @ matrix) for weight, head, matrix in own])

    def heads(self, name: str, x: Tensor, memory: Tensor, visible: Tensor) -> list[Tensor]:
        """Return softmax(Q K^T / sqrt(d_k)) V of each head, (n, d_v)."""
        number, d_k, d_v = self.config.num_heads, self.config.key_width, self.config.value_width
        parts = ("qkv",) if f"{name}.qkv.weight" in self.weights else ("query", "kv")
        joint = torch.cat([self.weights[f"{name}.{part}.weight"] for part in parts])
        matrices = (part.chunk(number) for part in joint.split([number * d_k, number * d_k, number * d_v]))
        found = []
        for query, key, value in zip(*matrices, strict=True):
            scores = (x @ query.T) @ (memory @ key.T).T / math.sqrt(d_k)
            found.append(scores.masked_fill(visible == 0, -math.inf).softmax(-1) @ memory @ value.T)
        return found

    def fed(self, layer: str, attention: str, x: Tensor) -> Tensor:
        """Return LN(x + FFN(x)), or with branches LN(sum alpha_i x_i + sum alpha_i FFN(x_i)), (n, d)."""
        alpha, norm = self.weights.get(f"{layer}.{attention}.mix.alpha"), f"{layer}.feed_forward_norm"
        if alpha is None:
            return self.normalised(norm, x + self.network(f"{layer}.feed_forward", x))
        branches = zip(alpha, x, strict=True)
        return self.normalised(
            norm, sum(weight * (own + self.network(f"{layer}.{attention}.mix", own)) for weight, own in branches)
        )

    def network(self, name: str, x: Tensor) -> Tensor:
        """Return max(0, x W_1 + b_1) W_2 + b_2."""
        inner, inner_bias, outer, outer_bias = (
            self.weights[f"{name}.{part}"] for part in ("inner.weight", "inner.bias", "outer.weight", "outer.bias")
        )
        return (x @ inner.T + inner_bias).clamp_min(0) @ outer.T + outer_bias

    def normalised(self, name: str, x: Tensor) -> Tensor:
        """Return LayerNorm, with epsilon inside the root."""
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        return scaled * self.weights[f"{name}.norm.weight"] + self.weights[f"{name}.norm.bias"]


@pytest.mark.parametrize(
    "name", ["narrow keys, wide values", "weighted, literal", "weighted, shared, cross, sub-layers"]
)
def test_loss_of_padded_sentences_follows_the_papers_equations(name):
    model = build_model(CONFIGS[name], (VOCAB, VOCAB)).eval()
    for weight, parameter in model.named_parameters():
        if "norm" in weight or weight.endswith("bias"):  # all start at 0 or 1
            torch.nn.init.normal_(parameter, std=0.5)
    batch, expected = pairs([9, 4, 6], [3, 8, 5]), 0.0
    for source, target_in, target in zip(batch.src, batch.tgt_in, batch.tgt_out, strict=True):
        length = int((target != PAD).sum())
        found = Equations(model).log_probs(source[source != PAD], target_in[:length])
        wanted = torch.full_like(found, 0.1 / (VOCAB - 1)).scatter(1, target[:length, None], 0.9)
        expected -= float((wanted * found).sum())
    assert model.loss(batch, 0.1).loss.item() == pytest.approx(expected, rel=1e-5)

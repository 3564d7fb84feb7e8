"""Benchmark a training step against torch.nn.Transformer with torch.optim.Adam.

    python bench/train_step.py
    python bench/train_step.py --rounds 3 --curve-steps 60

Prints one JSON line per system: seconds of a step (median and best of the rounds), target tokens/s, and speed ratios to
the plain loop in float32 and under bfloat16 autocast. With one thread, tokens/s are computed from the lowest CPU time.
`ratio_…` is the median over rounds, `cpu_ratio_…` compares the lowest CPU times of a step. On a busy machine only the
latter is meaningful, and only with `--threads 1`, because threads that wait for each other use CPU time, too. With
`--curve-steps`, a last line compares our losses in float32 and bfloat16 on the same data with the same masks.

`share_of_floor` is the time that the matmuls of a step would take at the speed of those of its feed-forward network,
divided by the time of the step. `over_operations` is for the Weighted Transformer: its step time over a Transformer's,
divided by the ratio of their FLOPs. `literal` is the paper's reading of section 3, in which every branch runs the whole
feed-forward network; in `split` each branch has a part of it.

The shape `small` has 3 + 3 layers of width 256, feed-forward 1024, 4 heads, 8000 subwords, sentences of 25 and 4100
target tokens per step. `demo` is trained at scale `demo`: width 64, feed-forward 256, 2000 subwords, and 440 tokens in
sentences of 20. Label smoothing is 0.1. Every system applies dropout of 0.1 in the same three places: sub-layer outputs
and embeddings, attention weights, and inside the feed-forward network. Every system runs one step per round in the same
process, with an allocator that keeps freed memory. Plain PyTorch uses its default library for matmuls. Ours in bfloat16
computes like a training that asks for bfloat16: in float32 where that is faster.
"""

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from pipeline.config import ModelConfig
from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.models.architectures import build_model
from pipeline.models.layers.positions import sinusoids
from pipeline.models.seq2seq import Seq2Seq
from pipeline.models.settings import BOS, EOS, PAD, BatchShape, training_flops
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from pipeline.training.machine import prepare
from pipeline.training.matmul_backend import TORCH_DEFAULT, current_backend, use_backend

SMOOTHING, DROPOUT = 0.1, 0.1


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    hidden: int
    heads: int
    vocabulary: int
    sentences: int
    length: int

    @property
    def tokens(self) -> int:
        return self.sentences * self.length

    @property
    def batch(self) -> BatchShape:
        return BatchShape(self.vocabulary, self.tokens, self.tokens, self.length, self.length)

    def models(self) -> dict[str, ModelConfig]:
        """Ours, by name."""
        common: dict[str, Any] = {"num_layers": self.layers, "d_model": self.width, "d_ff": self.hidden}
        common |= {"num_heads": self.heads, **dict.fromkeys(("dropout", "attention_dropout", "relu_dropout"), DROPOUT)}
        literal = {"ffn_mode": "shared", "branched_attention": "self", "residuals": "sub-layers"}
        split = {"ffn_mode": "split", "branched_attention": "cross", "residuals": "block"}
        return {
            "transformer": TransformerConfig(architecture="transformer", **common),
            "split": WeightedTransformerConfig(architecture="weighted_transformer", **common, **split),
            "literal": WeightedTransformerConfig(architecture="weighted_transformer", **common, **literal),
        }


SHAPES = {"small": Shape(3, 256, 1024, 4, 8000, 164, 25), "demo": Shape(3, 64, 256, 4, 2000, 22, 20)}
ADAM = {"lr": 5e-4, "betas": (0.9, 0.98), "eps": 1e-9}
# A step of one system: takes a batch, returns the loss per token before the update.
Step = Callable[[TextBatch], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--curve-steps", type=int, default=0, help="steps of the two loss curves")
    args = parser.parse_args()
    prepare(torch.device("cpu"), args.threads)
    shape = SHAPES[args.shape]
    makers = {"plain": partial(plain, shape)}
    makers |= {name: partial(our_step, shape, model) for name, model in shape.models().items()}
    systems = {
        f"{name} {precision}": make(precision == "bf16")
        for name, make in makers.items()
        for precision in ("fp32", "bf16")
    }
    for report in reports(shape, measure(shape, systems, args.rounds)):
        print(json.dumps(report), flush=True)
    if args.curve_steps:
        print(json.dumps(curves(shape, args.curve_steps)), flush=True)


@dataclass
class Times:
    """Time of one system's steps, one a round: seconds passed, and seconds of processor time."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def measure(shape: Shape, systems: dict[str, Step], rounds: int) -> dict[str, Times]:
    """Two rounds come first that are not counted."""
    fastest = current_backend()
    times = {name: Times() for name in systems}
    for number, batch in enumerate(batches(shape, rounds + 2)):
        for name, step in systems.items():
            use_backend(TORCH_DEFAULT if name.startswith("plain") else fastest)
            wall, cpu = time.perf_counter(), time.process_time()
            step(batch)
            if number >= 2:
                times[name].wall.append(time.perf_counter() - wall)
                times[name].cpu.append(time.process_time() - cpu)
    use_backend(fastest)
    return times


def reports(shape: Shape, times: dict[str, Times]) -> Iterator[dict]:
    work = {name: training_flops(model, shape.batch) for name, model in shape.models().items()}
    for name, own in times.items():
        median = statistics.median(own.wall)
        spent = min(own.cpu) if torch.get_num_threads() == 1 else median
        report = {
            "system": name,
            "shape": next(known for known, preset in SHAPES.items() if preset == shape),
            "step_s": round(median, 4),
            "best_step_s": round(min(own.wall), 4),
            "best_cpu_s": round(min(own.cpu), 4),
            "target_tokens_per_s": round(shape.tokens / spent),
        }
        rivals = {"plain_fp32": "plain fp32", "plain_bf16": "plain bf16"}
        kind, own_precision = name.split()
        if kind in ("split", "literal"):
            rivals["transformer"] = f"transformer {own_precision}"
        for key, rival in rivals.items():
            each = [theirs / ours for ours, theirs in zip(own.wall, times[rival].wall, strict=True)]
            report[f"ratio_{key}"] = round(statistics.median(each), 2)
            report[f"cpu_ratio_{key}"] = round(min(times[rival].cpu) / min(own.cpu), 2)
        if kind in work:
            report["share_of_floor"] = round(work[kind] / product_rate(shape, own_precision == "bf16") / spent, 2)
        if "ratio_transformer" in report:
            slower = 1 / report["cpu_ratio_transformer" if torch.get_num_threads() == 1 else "ratio_transformer"]
            report["over_operations"] = round(slower * work["transformer"] / work[kind], 2)
        yield report | {
            "rounds": len(own.wall),
            "threads": torch.get_num_threads(),
            "load": round(os.getloadavg()[0], 1),
        }


@cache
def product_rate(shape: Shape, narrow: bool) -> float:
    """Operations a second of a feed-forward layer's products, forward and backward, by the library that is used."""
    kind = torch.bfloat16 if narrow else torch.float32
    sizes = (shape.tokens, shape.width), (shape.width, shape.hidden), (shape.tokens, shape.hidden)
    x, weight, grad = (torch.randn(size, dtype=kind) for size in sizes)
    clock, best = time.process_time if torch.get_num_threads() == 1 else time.perf_counter, math.inf
    for _ in range(12):
        began = clock()
        for pair in ((x, weight), (grad, weight.t()), (x.t(), grad)):
            torch.mm(*pair)
        best = min(best, clock() - began)
    return 3 * 2 * x.numel() * weight.shape[1] / best


def curves(shape: Shape, steps: int) -> dict:
    """Our Transformer in both precisions, the same initial weights, data and masks."""
    losses = {}
    for precision in ("fp32", "bf16"):
        step = our_step(shape, shape.models()["transformer"], precision == "bf16")
        losses[precision] = []
        for number, batch in enumerate(batches(shape, steps)):
            torch.manual_seed(number)
            losses[precision].append(step(batch))
    gaps = [abs(narrow - wide) for narrow, wide in zip(losses["bf16"], losses["fp32"], strict=True)]
    shown = range(0, steps, max(1, steps // 10))
    return {
        "curve": "loss per target token, nats, before each update",
        "steps": steps,
        "largest_gap": round(max(gaps), 4),
        "mean_gap": round(statistics.mean(gaps), 4),
        **{name: [round(values[i], 4) for i in shown] for name, values in losses.items()},
    }


def batches(shape: Shape, count: int) -> Iterator[TextBatch]:
    """Zipf-distributed sentences to be copied in reverse, the same in every call."""
    generator = torch.Generator().manual_seed(1)
    frequencies = 1 / torch.arange(1, shape.vocabulary - EOS, dtype=torch.float)
    for _ in range(count):
        drawn = torch.multinomial(frequencies, shape.tokens, replacement=True, generator=generator)
        src = (drawn + EOS + 1).view(shape.sentences, shape.length)
        tgt_out = src.flip(1)
        src, tgt_out = (torch.cat((side[:, 1:], torch.full((shape.sentences, 1), EOS)), 1) for side in (src, tgt_out))
        tgt_in = torch.cat((torch.full((shape.sentences, 1), BOS), tgt_out[:, :-1]), 1)
        yield TextBatch(src, tgt_in, tgt_out)


def our_step(shape: Shape, config: ModelConfig, narrow: bool) -> Step:
    torch.manual_seed(1)
    model: Seq2Seq = build_model(config, (shape.vocabulary,) * 2)
    optimiser = torch.optim.Adam(model.parameters(), **ADAM, fused=True)

    def step(batch: TextBatch) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow and not current_backend().widened):
            sums = model.loss(batch, SMOOTHING)
        (sums.loss / sums.tokens).backward()
        optimiser.step()
        model.after_step(frozen=False)
        optimiser.zero_grad()
        return sums.loss.item() / sums.tokens

    return step


def plain(shape: Shape, narrow: bool) -> Step:
    torch.manual_seed(1)
    model = Plain(shape)
    optimiser = torch.optim.Adam(model.parameters(), **ADAM)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=SMOOTHING)

    def step(batch: TextBatch) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            loss = criterion(model(batch.src, batch.tgt_in).flatten(0, 1), batch.tgt_out.flatten())
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        return loss.item()

    return step


class Plain(nn.Module):
    """The library's Transformer between tied embeddings."""

    def __init__(self, shape: Shape):
        super().__init__()
        width = shape.width
        self.embedding = nn.Embedding(shape.vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.register_buffer("positions", sinusoids(shape.length, width))
        self.dropout = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(
            width, shape.heads, shape.layers, shape.layers, shape.hidden, DROPOUT, batch_first=True
        )
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(shape.length))

    def embed(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.embedding(tokens) * self.embedding.embedding_dim**0.5 + self.positions)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        decoded = self.transformer(self.embed(src), self.embed(tgt), tgt_mask=self.causal, tgt_is_causal=True)
        return decoded @ self.embedding.weight.t()


if __name__ == "__main__":
    main()

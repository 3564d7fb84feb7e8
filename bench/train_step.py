"""How fast is a training step? Ours against what one writes first: torch.nn.Transformer and torch.optim.Adam.

    python bench/train_step.py
    python bench/train_step.py --rounds 3 --curve-steps 60

One JSON line a system: seconds of a step (median and best of the rounds), target tokens/s, and the ratio of its speed
to the plain loop in float32 and under bfloat16 autocast, taken in each round (`ratio_…`, their median) and from the
least processor time of a step (`cpu_ratio_…`). Beside other work only the latter means something, and only with
`--threads 1`: threads that wait for each other burn processor time too. With `--curve-steps`, one line more: our losses
in float32 and bfloat16 on the same data with the same masks.

The shape is that of a small Transformer: 3 + 3 layers, width 256, feed-forward 1024, 4 heads, 8000 subwords, sentences
of 25, 4100 target tokens a step, label smoothing 0.1, 2 threads. Dropout of 0.1 lies in the same three places in every
system (sub-layer outputs and embeddings, attention weights, inside the feed-forward network). Every system runs one
step a round in the same process, under the same allocator setting: freed memory is kept.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from pipeline.config import ModelConfig
from pipeline.data.batches import TextBatch
from pipeline.models.build import build_model
from pipeline.models.layers.positions import sinusoids
from pipeline.models.seq2seq import Seq2Seq
from pipeline.models.transformer.settings import TransformerConfig
from pipeline.models.weighted_transformer.settings import WeightedTransformerConfig
from pipeline.symbols import BOS, EOS, PAD
from pipeline.training.machine import prepare

VOCABULARY, SENTENCES, LENGTH, SMOOTHING, DROPOUT = 8000, 164, 25, 0.1, 0.1
SHAPE = {
    "num_layers": 3,
    "d_model": 256,
    "d_ff": 1024,
    "num_heads": 4,
    "dropout": DROPOUT,
    "attention_dropout": DROPOUT,
    "relu_dropout": DROPOUT,
}
TRANSFORMER = TransformerConfig(architecture="transformer", **SHAPE)
WEIGHTED = WeightedTransformerConfig(architecture="weighted_transformer", **SHAPE)
ADAM = {"lr": 5e-4, "betas": (0.9, 0.98), "eps": 1e-9}
WARMUP_STEPS = 30
# A step of one system: takes a batch, returns the loss per token before the update.
Step = Callable[[TextBatch], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--curve-steps", type=int, default=0, help="updates of the two loss curves")
    args = parser.parse_args()
    prepare(torch.device("cpu"), args.threads)
    systems = {
        f"{name} {precision}": make(precision == "bf16")
        for name, make in {"plain": plain, "transformer": transformer, "weighted": weighted}.items()
        for precision in ("fp32", "bf16")
    }
    for report in reports(measure(systems, args.rounds)):
        print(json.dumps(report), flush=True)
    if args.curve_steps:
        print(json.dumps(curves(args.curve_steps)), flush=True)


@dataclass
class Times:
    """Of one system's steps, one a round: seconds passed, and seconds of processor time."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


def measure(systems: dict[str, Step], rounds: int) -> dict[str, Times]:
    """Two rounds come first that are not counted."""
    times = {name: Times() for name in systems}
    for number, batch in enumerate(batches(rounds + 2)):
        for name, step in systems.items():
            wall, cpu = time.perf_counter(), time.process_time()
            step(batch)
            if number >= 2:
                times[name].wall.append(time.perf_counter() - wall)
                times[name].cpu.append(time.process_time() - cpu)
    return times


def reports(times: dict[str, Times]) -> Iterator[dict]:
    for name, own in times.items():
        median = statistics.median(own.wall)
        report = {
            "system": name,
            "step_s": round(median, 4),
            "best_step_s": round(min(own.wall), 4),
            "best_cpu_s": round(min(own.cpu), 4),
            "target_tokens_per_s": round(SENTENCES * LENGTH / median),
        }
        own_precision = name.split()[1]
        rivals = {"plain_fp32": "plain fp32", "plain_bf16": "plain bf16"}
        if name.startswith("weighted"):
            rivals["transformer"] = f"transformer {own_precision}"
        for key, rival in rivals.items():
            each = [theirs / ours for ours, theirs in zip(own.wall, times[rival].wall, strict=True)]
            report[f"ratio_{key}"] = round(statistics.median(each), 2)
            report[f"cpu_ratio_{key}"] = round(min(times[rival].cpu) / min(own.cpu), 2)
        yield report | {
            "rounds": len(own.wall),
            "threads": torch.get_num_threads(),
            "load": round(os.getloadavg()[0], 1),
        }


def curves(steps: int) -> dict:
    """Our Transformer in both precisions, the same initial weights, data and masks."""
    losses = {}
    for precision in ("fp32", "bf16"):
        step = transformer(precision == "bf16")
        losses[precision] = []
        for number, batch in enumerate(batches(steps)):
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


def batches(count: int) -> Iterator[TextBatch]:
    """Zipf-distributed sentences to be copied in reverse, the same in every call."""
    generator = torch.Generator().manual_seed(1)
    frequencies = 1 / torch.arange(1, VOCABULARY - EOS, dtype=torch.float)
    for _ in range(count):
        drawn = torch.multinomial(frequencies, SENTENCES * LENGTH, replacement=True, generator=generator)
        src = (drawn + EOS + 1).view(SENTENCES, LENGTH)
        tgt_out = src.flip(1)
        src, tgt_out = (torch.cat((side[:, 1:], torch.full((SENTENCES, 1), EOS)), 1) for side in (src, tgt_out))
        tgt_in = torch.cat((torch.full((SENTENCES, 1), BOS), tgt_out[:, :-1]), 1)
        yield TextBatch(src, tgt_in, tgt_out)


def transformer(narrow: bool) -> Step:
    return our_step(TRANSFORMER, narrow)


def weighted(narrow: bool) -> Step:
    return our_step(WEIGHTED, narrow)


def our_step(config: ModelConfig, narrow: bool) -> Step:
    torch.manual_seed(1)
    model: Seq2Seq = build_model(config, (VOCABULARY, VOCABULARY))
    optimiser = torch.optim.Adam(model.parameters(), **ADAM, fused=True)

    def step(batch: TextBatch) -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            sums = model.loss(batch, SMOOTHING)
        (sums.loss / sums.tokens).backward()
        optimiser.step()
        model.after_step(frozen=False)
        optimiser.zero_grad()
        return sums.loss.item() / sums.tokens

    return step


def plain(narrow: bool) -> Step:
    torch.manual_seed(1)
    model = Plain()
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

    def __init__(self):
        super().__init__()
        width = SHAPE["d_model"]
        self.embedding = nn.Embedding(VOCABULARY, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.register_buffer("positions", sinusoids(0, LENGTH, width))
        self.dropout = nn.Dropout(DROPOUT)
        layers = SHAPE["num_layers"]
        self.transformer = nn.Transformer(
            width, SHAPE["num_heads"], layers, layers, SHAPE["d_ff"], DROPOUT, batch_first=True
        )
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def embed(self, tokens: Tensor) -> Tensor:
        return self.dropout(self.embedding(tokens) * self.embedding.embedding_dim**0.5 + self.positions)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        decoded = self.transformer(self.embed(src), self.embed(tgt), tgt_mask=self.causal, tgt_is_causal=True)
        return decoded @ self.embedding.weight.t()


if __name__ == "__main__":
    main()

"""Benchmark training of the recurrent models of *Multi-channel Encoder* against a plain model with torch.nn.GRU.

    python bench/train_recurrent.py
    python bench/train_recurrent.py --shape paper --rounds 3

Prints one JSON line per system: seconds of a step (median and best of the rounds), target tokens/s, and speed ratios to
RNN and to the plain model in the same precision. `ratio_…` is the median over rounds, `cpu_ratio_…` compares the lowest
CPU times of a step. On a busy machine only the latter is meaningful, and only with `--threads 1`. A further line per
system breaks its CPU time down: encoder and decoder, forward and backward, and the rest (embeddings, readout, softmax,
optimiser).

The plain model has a bidirectional torch.nn.GRU, a decoder of two torch.nn.GRUCell around the same attention, logits
and torch.nn.functional.cross_entropy, with the same widths and torch's biases. Shape `demo` has width 128 (attention
256), 2000 symbols and 64 sentences of 20; `paper` has width 512 (attention 1024), 30000 symbols and 64 sentences of 25.
Every system runs one step per round in the same process, with an allocator that keeps freed memory. Plain PyTorch uses
its default library for matmuls. Ours in bfloat16 computes like a training that asks for bfloat16: in float32 where that
is faster.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.data.batches.parallel_batches import TextBatch
from pipeline.models.architectures import build_model
from pipeline.models.recurrent.settings import RecurrentConfig
from pipeline.models.settings import BOS, EOS
from pipeline.training.machine import prepare
from pipeline.training.matmul_backend import TORCH_DEFAULT, current_backend, use_backend


@dataclass(frozen=True)
class Shape:
    width: int
    symbols: int
    sentences: int
    length: int


SHAPES = {"demo": Shape(128, 2000, 64, 20), "paper": Shape(512, 30000, 64, 25)}
CHANNELS = ["rnn", "ntm", "ntm-rnn-emb"]
OUTPUT_DROPOUT = 0.5
ADAM = {"lr": 5e-4, "betas": (0.9, 0.98), "eps": 1e-9}
WARM_UP, CLIP = 2, 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="demo")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    prepare(torch.device("cpu"), args.threads)
    shape = SHAPES[args.shape]
    batch = random_batch(shape)
    for narrow in (False, True):
        systems = {"plain": stepper(Plain(shape), narrow)}
        models = {channels: build_model(config(shape, channels), (shape.symbols,) * 2) for channels in CHANNELS}
        systems |= {channels: stepper(model, narrow) for channels, model in models.items()}
        times = measure(systems, batch, args.rounds)
        rivals = {name: times[name] for name in ("plain", "rnn")}
        common = {"shape": args.shape, "precision": "bf16" if narrow else "fp32", "threads": args.threads}
        for name, own in times.items():
            report = common | {"system": name} | speeds(own, rivals, shape.sentences * shape.length)
            print(json.dumps(report | {"load": round(os.getloadavg()[0], 1)}), flush=True)
        for name, model in models.items():
            shares = parts(model, batch, narrow, min(times[name].cpu))
            print(json.dumps(common | {"system": name, **shares}), flush=True)


def config(shape: Shape, channels: str) -> RecurrentConfig:
    return RecurrentConfig(
        architecture="recurrent",
        channels=channels,
        d_embedding=shape.width,
        d_state=shape.width,
        d_attention=2 * shape.width,
        d_readout=shape.width,
        output_dropout=OUTPUT_DROPOUT,
    )


def random_batch(shape: Shape) -> TextBatch:
    """Random sentences of one length."""
    torch.manual_seed(1)
    drawn = torch.randint(EOS + 1, shape.symbols, (2, shape.sentences, shape.length - 1))
    src, tgt_out = (torch.cat((side, torch.full((shape.sentences, 1), EOS)), 1) for side in drawn)
    tgt_in = torch.cat((torch.full((shape.sentences, 1), BOS), tgt_out[:, :-1]), 1)
    return TextBatch(src, tgt_in, tgt_out)


def stepper(model: nn.Module, narrow: bool) -> Callable[[TextBatch], None]:
    """One update: forward, backward, clipping, Adam."""
    optimiser = torch.optim.Adam(model.parameters(), **ADAM, fused=True)

    def step(batch: TextBatch) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow and not current_backend().widened):
            sums = model.loss(batch, 0.0)
        (sums.loss / sums.tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        optimiser.zero_grad()

    return step


@dataclass
class Times:
    """Time of one system's steps, one a round: seconds passed, and seconds of processor time."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def take(self, work: Callable[[], object]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)


def measure(systems: dict[str, Callable], batch: TextBatch, rounds: int) -> dict[str, Times]:
    fastest = current_backend()
    times = {name: Times() for name in systems}
    for number in range(WARM_UP + rounds):
        for name, step in systems.items():
            use_backend(TORCH_DEFAULT if name.startswith("plain") else fastest)
            if number < WARM_UP:
                step(batch)
            else:
                times[name].take(lambda step=step: step(batch))
    use_backend(fastest)
    return times


def speeds(own: Times, rivals: dict[str, Times], tokens: int) -> dict:
    median = statistics.median(own.wall)
    report = {"step_s": round(median, 4), "best_step_s": round(min(own.wall), 4), "best_cpu_s": round(min(own.cpu), 4)}
    report["target_tokens_per_s"] = round(tokens / median)
    for rival, times in rivals.items():
        each = [theirs / ours for ours, theirs in zip(own.wall, times.wall, strict=True)]
        report[f"ratio_{rival}"] = round(statistics.median(each), 2)
        report[f"cpu_ratio_{rival}"] = round(min(times.cpu) / min(own.cpu), 2)
    return report | {"rounds": len(own.wall)}


def parts(model: nn.Module, batch: TextBatch, narrow: bool, step_s: float) -> dict:
    """Least processor time of encoder and decoder alone, of three; the rest is what is left of a step."""
    mask = batch.src_mask
    x, y = (
        table(tokens).detach()
        for table, tokens in ((model.src_embedding, batch.src), (model.tgt_embedding, batch.tgt_in))
    )
    annotations, start = (tensor.detach() for tensor in model.encode(batch.src, mask))
    work = {
        "encoder": lambda: model.encoder(x.requires_grad_(), mask),
        "decoder": lambda: model.decoder(*(given.requires_grad_() for given in (y, start, annotations)), mask),
    }
    found = {f"{name}_cpu_s": least(call, narrow) for name, call in work.items()}
    found["rest_cpu_s"] = step_s - sum(found.values())
    return {"step_cpu_s": round(step_s, 4), **{name: round(value, 4) for name, value in found.items()}}


def least(call: Callable[[], tuple[Tensor, Tensor]], narrow: bool) -> float:
    times = Times()

    def both_ways() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow and not current_backend().widened):
            outputs = call()
        torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])

    both_ways()
    for _ in range(3):
        times.take(both_ways)
    return min(times.cpu)


@dataclass(frozen=True)
class PlainSums:
    loss: Tensor
    tokens: int


class Plain(nn.Module):
    """Attention-based translation as one writes it with the library's layers."""

    def __init__(self, shape: Shape):
        super().__init__()
        width = shape.width
        self.src_embedding, self.tgt_embedding = nn.Embedding(shape.symbols, width), nn.Embedding(shape.symbols, width)
        self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.start = nn.Linear(2 * width, width)
        self.first, self.second = nn.GRUCell(width, width), nn.GRUCell(2 * width, width)
        self.query = nn.Linear(width, 2 * width, bias=False)
        self.keys = nn.Linear(2 * width, 2 * width)
        self.score = nn.Linear(2 * width, 1)
        self.readout = nn.Linear(4 * width, width)
        self.output = nn.Linear(width, shape.symbols, bias=False)

    def loss(self, batch: TextBatch, label_smoothing: float) -> PlainSums:
        h, _ = self.encoder(self.src_embedding(batch.src))
        state, keys, hidden = torch.tanh(self.start(h.mean(1))), self.keys(h), ~batch.src_mask
        y, steps = self.tgt_embedding(batch.tgt_in), []
        for previous in y.unbind(1):
            state = self.first(previous, state)
            scores = self.score(torch.tanh(keys + self.query(state).unsqueeze(1))).squeeze(2)
            weights = scores.masked_fill(hidden, -torch.inf).softmax(1)
            context = torch.bmm(weights.unsqueeze(1), h.to(weights.dtype)).squeeze(1)
            state = self.second(context, state)
            steps.append(torch.cat((state, previous, context), 1))
        read = F.dropout(torch.tanh(self.readout(torch.stack(steps, 1))), OUTPUT_DROPOUT)
        logits, targets = self.output(read).flatten(0, 1), batch.tgt_out.flatten()
        return PlainSums(
            F.cross_entropy(logits, targets, reduction="sum", label_smoothing=label_smoothing), len(targets)
        )


if __name__ == "__main__":
    main()

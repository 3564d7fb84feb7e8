"""Benchmark training of the speech recognisers against a plain CTC model in torch.

    python bench/train_recognisers.py
    python bench/train_recognisers.py --shape paper --threads 1 --rounds 3

Prints one JSON line per system: seconds of a step (median and best), seconds of speech per CPU second, and two speed
ratios to the plain model. `ratio_…` is the median over rounds, `cpu_ratio_…` compares the lowest CPU times of a step.
On a busy machine only the latter is meaningful, and only with `--threads 1`.

The plain model has torch.nn.Conv2d, one bidirectional torch.nn.GRU per layer over packed sequences, batch normalisation
over all frames, and torch.nn.functional.ctc_loss. The shapes are those of the scales: 32 utterances of two seconds with
25 characters each (`paper`: 8 of six seconds and 75 characters). Every system runs one step per round in the same
process.
"""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from train_recurrent import measure, speeds, stepper

from pipeline.data.batches.speech_batches import SpeechBatch
from pipeline.models.architectures import build_model
from pipeline.models.ctc.settings import KERNELS, CTCConfig
from pipeline.models.joint_recogniser.settings import JointRecogniserConfig
from pipeline.models.seq2seq import LossSums
from pipeline.models.settings import BOS, EOS, PAD
from pipeline.models.speech_attention.settings import AttentionRecogniserConfig
from pipeline.training.machine import prepare

VOCABULARY, FEATURES, FRAMES_A_SECOND = 32, 40, 100


@dataclass(frozen=True)
class Shape:
    shrunk: float
    """Times by which recurrent layers are narrower than in the paper."""
    channels: int
    stacking: int
    utterances: int
    seconds: float

    def ctc(self) -> CTCConfig:
        return CTCConfig(architecture="ctc", channels=self.channels, hidden_width=round(800 / self.shrunk))

    def attention(self) -> AttentionRecogniserConfig:
        widths = {"encoder_width": 480, "decoder_width": 960, "embedding_width": 256, "attention_width": 480}
        narrow = {name: round(width / self.shrunk) for name, width in widths.items()}
        return AttentionRecogniserConfig(
            architecture="speech_attention", frame_stacking=self.stacking, location_width=25, **narrow
        )

    def joint(self) -> JointRecogniserConfig:
        """Return the recogniser of the paper `anchors`, whatever the scale."""
        shape = {"num_layers": 1, "d_model": 256, "d_ff": 512, "num_heads": 4, "dropout": 0.1, "channels": 16}
        read = {"encoder_layers": 2, "encoder_dropout": 0.2, "utterance_mean": "removed"}
        masks = {"time_masks": 2, "frequency_masks": 2}
        return JointRecogniserConfig.model_validate({"architecture": "joint_recogniser"} | shape | read | masks)


SHAPES = {"demo": Shape(8, 4, 2, 32, 2), "small": Shape(4, 16, 2, 32, 2), "paper": Shape(1, 32, 1, 8, 6)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    prepare(torch.device("cpu"), args.threads)
    shape = SHAPES[args.shape]
    models: dict[str, Callable[[], nn.Module]] = {
        "plain": partial(Plain, shape.ctc()),
        "ctc": partial(build_model, shape.ctc(), (VOCABULARY,) * 2),
        "attention": partial(build_model, shape.attention(), (VOCABULARY,) * 2),
        "joint": partial(build_model, shape.joint(), (VOCABULARY,) * 2),
    }
    steps = {
        f"{name} {precision}": stepper(seeded(make), precision == "bf16")
        for name, make in models.items()
        for precision in ("fp32", "bf16")
    }
    times = measure(steps, random_batch(shape), args.rounds)
    for name, own in times.items():
        heard = shape.utterances * shape.seconds
        report = speeds(own, {"plain": times["plain fp32"]}, heard)
        report["times_real_time_a_core"] = round(heard / min(own.cpu))
        common = {"shape": args.shape, "system": name, "threads": args.threads}
        print(json.dumps(common | report | {"load": round(os.getloadavg()[0], 1)}), flush=True)


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(1)
    return make()


def random_batch(shape: Shape) -> SpeechBatch:
    """Noise, the last utterance a tenth shorter than the first."""
    torch.manual_seed(1)
    longest = round(shape.seconds * FRAMES_A_SECOND)
    counts = torch.linspace(longest, 0.9 * longest, shape.utterances).long()
    frames = torch.randn(shape.utterances, longest, FEATURES)
    text = torch.randint(EOS + 1, VOCABULARY, (shape.utterances, round(12.5 * shape.seconds)))
    begin, end = (torch.full((shape.utterances, 1), symbol) for symbol in (BOS, EOS))
    return SpeechBatch(frames, counts, torch.cat((begin, text), 1), torch.cat((text, end), 1))


class Plain(nn.Module):
    """The same operations in the library's modules."""

    def __init__(self, config: CTCConfig):
        super().__init__()
        channels, width = config.channels, config.hidden_width
        self.convolutions, read = nn.ModuleList(), 1
        for size, height, stride, jump in KERNELS:
            self.convolutions.append(
                nn.Conv2d(read, channels, (size, height), (stride, jump), (size // 2, height // 2))
            )
            read = channels
        inputs = [channels * FEATURES // 4] + [width] * (config.num_layers - 1)
        self.projections = nn.ModuleList(nn.Linear(size, width, bias=False) for size in inputs)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in inputs)
        self.units = nn.ModuleList(nn.GRU(width, width, batch_first=True, bidirectional=True) for _ in inputs)
        self.output = nn.Linear(width, VOCABULARY)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = x.unsqueeze(1)
        for convolution in self.convolutions:
            x = convolution(x).clamp(0, 20)
        x = x.transpose(1, 2).flatten(2)
        for projection, norm, unit in zip(self.projections, self.norms, self.units, strict=True):
            x = norm(projection(x).transpose(1, 2)).transpose(1, 2)
            packed = pack_padded_sequence(x, lengths, batch_first=True)
            x = sum(pad_packed_sequence(unit(packed)[0], batch_first=True)[0].chunk(2, dim=-1))
        return self.output(x).float().log_softmax(-1)

    def loss(self, batch: SpeechBatch, label_smoothing: float) -> LossSums:
        lengths, targets = -(-batch.frame_counts // 2), batch.tgt_in[:, 1:]
        counts = (targets != PAD).sum(1)
        log_probs = self(batch.frames, lengths).transpose(0, 1)
        loss = F.ctc_loss(log_probs, targets, lengths, counts, blank=PAD, reduction="sum", zero_infinity=True)
        return LossSums(loss, loss.detach(), int(counts.sum()))


if __name__ == "__main__":
    main()

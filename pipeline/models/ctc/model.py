"""Deep Speech 2's shape, trained by CTC (Amodei et al. 2015; Graves et al. 2006; Cold Fusion, Table 3).

Dimensions: B utterances, S frames, S' output frames, F features, H units of a direction, T characters, V vocabulary.
PAD, which no target holds, is the blank.
"""

import torch
from torch import Tensor, nn

from pipeline.core.symbols import BOS, EOS, PAD, UNK
from pipeline.models.ctc.convolution import Convolution
from pipeline.models.ctc.lattice import ctc_lattice_loss
from pipeline.models.ctc.settings import KERNELS, CTCConfig
from pipeline.models.layers.frames_read import frames_read
from pipeline.models.layers.gru_sequence import side_by_side
from pipeline.models.layers.modules import Modules
from pipeline.models.layers.reading import numbers_on, reordered, reversal, within
from pipeline.models.seq2seq import FrameModel, LossSums
from pipeline.models.settings import ModelSettings

BLANK = PAD
NEVER_WRITTEN = [UNK, BOS, EOS]


class SequenceBatchNorm(nn.Module):
    """Batch normalisation whose statistics are over all frames of all utterances, padding left out.

    Deep Speech 2, section 3.2. Running statistics, used outside training, are updated as torch's own are.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, width: int, momentum: float = 0.1, eps: float = 1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_variance", torch.ones(width))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, S, H), mask (B, S) -> (B, S, H)"""
        mean, variance = self.running_mean, self.running_variance
        if self.training:
            mean, variance, unbiased = moments(x, mask)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_variance.lerp_(variance * unbiased, self.momentum)
        return (x - mean) * (torch.rsqrt(variance + self.eps) * self.weight) + self.bias


def moments(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor | float]:
    """Mean and variance (H,) of x (B, S, H) where mask (B, S) is set, and what makes the variance unbiased."""
    if not x.is_cuda:
        real = x[mask].float()
        variance, mean = torch.var_mean(real, dim=0, correction=0)
        return mean, variance, len(real) / max(len(real) - 1, 1)
    weight = mask.unsqueeze(2) / mask.sum()  # to count what is chosen, the host would have to wait
    mean = (x * weight).sum((0, 1))
    variance = ((x - mean).square() * weight).sum((0, 1))
    return mean, variance, (count := mask.sum()) / (count - 1).clamp_min(1)


class BidirectionalGRU(nn.Module):
    """W x, normalised over the batch, then a GRU each way; the two are added."""

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.project = nn.Linear(inputs, width, bias=False)
        self.norm = SequenceBatchNorm(width)
        self.ahead = nn.GRU(width, width, batch_first=True)
        self.back = nn.GRU(width, width, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, S, inputs), lengths (B,) -> (B, S, H)"""
        mask = within(lengths, x.shape[1])
        x, places = self.norm(self.project(x), mask), reversal(mask)
        ahead, back = side_by_side((self.ahead, self.back), (x, reordered(x, places)))
        return ahead + reordered(back, places)


class CTC(FrameModel):
    """Two convolutions over time and frequency, bidirectional GRUs, and a distribution over symbols per frame."""

    def __init__(self, config: CTCConfig, vocab: int):
        super().__init__()
        self.config = config
        inputs, bands, convolutions = 1, config.features, []
        for width, height, stride, jump in KERNELS:
            convolutions.append(
                Convolution(inputs, config.channels, (width, height), (stride, jump), (width // 2, height // 2))
            )
            inputs, bands = config.channels, -(-bands // jump)
        self.convolutions = Modules[Convolution](convolutions)
        widths = [config.channels * bands] + [config.hidden_width] * (config.num_layers - 1)
        self.layers = Modules[BidirectionalGRU](BidirectionalGRU(width, config.hidden_width) for width in widths)
        self.output = nn.Linear(config.hidden_width, vocab)

    def log_probs(self, batch) -> tuple[Tensor, Tensor]:
        """log p(symbol | frame), (B, S', V) float32, and the output frames of each utterance (B,)."""
        lengths = batch.frame_counts
        x = frames_read(self.config, batch.frames, lengths, self.training).unsqueeze(1)
        for convolution in self.convolutions:
            lengths = -(-lengths // convolution.stride[0])
            x = convolution(x).clamp(0, 20)  # section 3.1: ReLU clipped at 20
            x = x * within(lengths, x.shape[2])[:, None, :, None]
        x = x.transpose(1, 2).flatten(2)
        for layer in self.layers:
            x = layer(x, lengths)
        return frame_log_probs(self.output(x)), lengths

    def loss(self, batch, label_smoothing: float) -> LossSums:
        """-log p(characters | speech), summed over all ways to align them; EOS is not among the characters."""
        if label_smoothing:
            raise ValueError("CTC has no label smoothing")
        return ctc_loss(self.log_probs(batch)[0], self.config, batch)

    def best_path(self, batch) -> list[list[int]]:
        """Repeats merged, blanks left out."""
        log_probs, lengths = self.log_probs(batch)
        found = zip(log_probs.argmax(-1).tolist(), lengths.tolist(), strict=True)
        return [collapse(row[:length]) for row, length in found]


def frame_log_probs(logits: Tensor) -> Tensor:
    """(B, S', V) -> log-probabilities, float32, of the symbols of frames."""
    return logits.float().index_fill(-1, numbers_on(logits.device, *NEVER_WRITTEN), -1e4).log_softmax(-1)


def ctc_loss(log_probs: Tensor, model: ModelSettings, batch) -> LossSums:
    """-log p(characters | speech) of log_probs (B, S', V) of a batch; EOS is not among the characters."""
    if batch.on_grid:
        return lattice_loss(log_probs, model, batch)
    frames, characters = batch.counts_on_host
    lengths = [model.output_frames(count) for count in frames]
    by_frame, targets = log_probs.transpose(0, 1), batch.tgt_in[:, 1:]
    # F.ctc_loss does the same once the host has waited for two copies of the targets: cuDNN might take those
    losses, _ = torch._ctc_loss(by_frame, targets, lengths, characters, blank=BLANK, zero_infinity=True)
    loss = losses.masked_fill(losses.isinf(), 0).sum()
    return LossSums(loss, loss.detach(), batch.num_tokens - len(targets))


def lattice_loss(log_probs: Tensor, model: ModelSettings, batch) -> LossSums:
    """Compute the same loss from lengths that stay on the device, as a CUDA graph has to."""
    targets = batch.tgt_in[:, 1:]
    characters = (targets != PAD).sum(1)
    losses = ctc_lattice_loss(log_probs, targets, model.output_frames(batch.frame_counts), characters)
    loss = losses.masked_fill(losses.isinf() | (batch.frame_counts == 0), 0).sum()
    return LossSums(loss, loss.detach(), batch.num_tokens - len(targets))


def collapse(path: list[int]) -> list[int]:
    """What a path of symbols, one a frame, stands for."""
    return [one for one, before in zip(path, [BLANK, *path[:-1]], strict=True) if one not in (before, BLANK)]


def build(config: CTCConfig, vocab_sizes: tuple[int, int]) -> CTC:
    return CTC(config, vocab_sizes[1])

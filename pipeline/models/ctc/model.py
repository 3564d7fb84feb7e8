"""The CTC recogniser in the shape of Deep Speech 2 (Amodei et al. 2015; Graves et al. 2006; Cold Fusion, Table 3).

Dimensions: B utterances, S frames, S' output frames, F features, H units of a direction, T characters, V vocabulary.
I inputs of a layer. PAD, which no target holds, is the blank.
"""

import torch
from torch import Tensor, nn

from pipeline.models import kernels
from pipeline.models.ctc.lattice import BLANK, ctc_lattice_loss
from pipeline.models.ctc.settings import KERNELS, CTCConfig
from pipeline.models.kernels.gru import gru_sequences
from pipeline.models.kernels.loops import run_recurrent
from pipeline.models.kernels.operators import conv2d_over_frames
from pipeline.models.layers.positions import cached_indices, gather_positions, length_mask, reversal_indices
from pipeline.models.layers.speech_encoder import normalise_and_mask
from pipeline.models.seq2seq import FrameModel, LossSums, Modules
from pipeline.models.settings import BOS, EOS, PAD, UNK, ModelSettings

NEVER_WRITTEN = [UNK, BOS, EOS]
BATCH_NORM_MOMENTUM = 0.1
"""Weight of a new batch in the running statistics."""
BATCH_NORM_EPS = 1e-5
"""Added to the variance."""


class Convolution(nn.Conv2d):
    """`torch.nn.Conv2d` with a faster CPU kernel."""

    def forward(self, x: Tensor) -> Tensor:
        """Convolve `x` (B, channels, S, F) over frames and features to (B, channels, S', F')."""
        return conv2d_over_frames(self, x) if kernels.enabled_on_cpu(x) else super().forward(x)


class SequenceBatchNorm(nn.Module):
    """Batch normalisation over all frames without padding (Deep Speech 2, section 3.2).

    Running statistics are updated as torch does, and used outside training.

    Args:
        width: H.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, width: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_variance", torch.ones(width))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Normalise each feature over batch and time.

        Args:
            x: Shape (B, S, H).
            mask: Shape (B, S), True at frames; only they enter the statistics.

        Returns:
            Shape (B, S, H).
        """
        mean, variance = self.running_mean, self.running_variance
        if self.training:
            mean, variance, unbiased = moments(x, mask)
            with torch.no_grad():
                finite = (mean + variance).isfinite()  # the trainer skips a step that is not
                for running, new in (self.running_mean, mean), (self.running_variance, variance * unbiased):
                    running.lerp_(torch.where(finite, new, running), BATCH_NORM_MOMENTUM)
        return (x - mean) * (torch.rsqrt(variance + BATCH_NORM_EPS) * self.weight) + self.bias


def moments(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor | float]:
    """Compute the moments of each feature over batch and time.

    Args:
        x: Shape (B, S, H).
        mask: Shape (B, S), True at frames.

    Returns:
        Mean (H,), biased variance (H,), and the factor that makes the variance unbiased.
    """
    if not x.is_cuda:
        real = x[mask].float()
        variance, mean = torch.var_mean(real, dim=0, correction=0)
        return mean, variance, len(real) / max(len(real) - 1, 1)
    weight = mask.unsqueeze(2) / mask.sum()  # indexing by the mask would make the host wait
    mean = (x * weight).sum((0, 1))
    variance = ((x - mean).square() * weight).sum((0, 1))
    return mean, variance, (count := mask.sum()) / (count - 1).clamp_min(1)


class BidirectionalGRU(nn.Module):
    """W x, normalised over the batch, then a GRU in each direction; the two outputs are added.

    Args:
        inputs: I.
        width: H.
    """

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.project = nn.Linear(inputs, width, bias=False)
        self.norm = SequenceBatchNorm(width)
        self.ahead = nn.GRU(width, width, batch_first=True)
        self.back = nn.GRU(width, width, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Run the layer over the utterances of a batch.

        Args:
            x: Shape (B, S, I).
            lengths: Frames of each utterance, shape (B,).

        Returns:
            States (B, S, H).
        """
        mask = length_mask(lengths, x.shape[1])
        x, indices = self.norm(self.project(x), mask), reversal_indices(mask)
        inputs = x, gather_positions(x, indices)
        if kernels.enabled_on_cpu(x):
            ahead, back = gru_sequences((self.ahead, self.back), inputs)
        else:
            ahead, back = run_recurrent(self.ahead, inputs[0])[0], run_recurrent(self.back, inputs[1])[0]
        return ahead + gather_positions(back, indices)


class CTC(FrameModel):
    """Two convolutions over time and frequency, bidirectional GRUs, and an output layer."""

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
        lengths = batch.frame_counts
        x = normalise_and_mask(self.config, batch.frames, lengths, self.training).unsqueeze(1)
        for convolution in self.convolutions:
            lengths = -(-lengths // convolution.stride[0])
            x = convolution(x).clamp(0, 20)  # section 3.1: ReLU clipped at 20
            x = x * length_mask(lengths, x.shape[2])[:, None, :, None]
        x = x.transpose(1, 2).flatten(2)
        for layer in self.layers:
            x = layer(x, lengths)
        return frame_log_probs(self.output(x)), lengths

    def loss(self, batch, label_smoothing: float) -> LossSums:
        if label_smoothing:
            raise ValueError("CTC has no label smoothing")
        return ctc_loss(self.log_probs(batch)[0], self.config, batch)

    def best_path(self, batch) -> list[list[int]]:
        log_probs, lengths = self.log_probs(batch)
        found = zip(log_probs.argmax(-1).tolist(), lengths.tolist(), strict=True)
        return [collapse(row[:length]) for row, length in found]


def frame_log_probs(logits: Tensor) -> Tensor:
    """Return float32 log-probabilities of `logits` (B, S', V): about -1e4 for UNK, BOS and EOS, which no text has."""
    return logits.float().index_fill(-1, cached_indices(logits.device, *NEVER_WRITTEN), -1e4).log_softmax(-1)


def ctc_loss(log_probs: Tensor, model: ModelSettings, batch) -> LossSums:
    """Compute -log p(characters | speech) of a batch; EOS does not count as a character.

    Args:
        log_probs: Shape (B, S', V).
        model: Settings that convert input frames to output frames.
        batch: Transcripts and frame counts. With `on_grid`, the lengths stay on the device.

    Returns:
        Sums in nats; an utterance whose transcript does not fit its frames adds 0.
    """
    if batch.on_grid:
        return lattice_loss(log_probs, model, batch)
    frames, characters = batch.counts_on_host
    lengths = [model.output_frames(count) for count in frames]
    time_first, targets = log_probs.transpose(0, 1), batch.tgt_in[:, 1:]
    # F.ctc_loss does the same after asking whether cuDNN can, for which the host waits for two copies of the targets.
    losses, _ = torch._ctc_loss(time_first, targets, lengths, characters, blank=BLANK, zero_infinity=True)
    loss = losses.masked_fill(losses.isinf(), 0).sum()
    return LossSums(loss, loss.detach(), batch.num_tokens - len(targets))


def lattice_loss(log_probs: Tensor, model: ModelSettings, batch) -> LossSums:
    """Compute the loss from lengths that stay on the device, as a CUDA graph requires; see `ctc_loss`."""
    targets = batch.tgt_in[:, 1:]
    characters = (targets != PAD).sum(1)
    losses = ctc_lattice_loss(log_probs, targets, model.output_frames(batch.frame_counts), characters)
    loss = losses.masked_fill(losses.isinf() | (batch.frame_counts == 0), 0).sum()
    return LossSums(loss, loss.detach(), batch.num_tokens - len(targets))


def collapse(path: list[int]) -> list[int]:
    """Merge repeats and remove blanks in a path of one symbol per frame."""
    return [symbol for symbol, before in zip(path, [BLANK, *path[:-1]], strict=True) if symbol not in (before, BLANK)]


def build(config: CTCConfig, vocab_sizes: tuple[int, int]) -> CTC:
    """Return a model with random weights; see `build_model`. Only the target vocabulary is used."""
    return CTC(config, vocab_sizes[1])

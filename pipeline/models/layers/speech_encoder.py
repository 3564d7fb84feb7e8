"""Speech as the attention and joint recognisers encode it (Cold Fusion, section 4.2).

Settings may normalise features per utterance, and mask them in training (SpecAugment). The encoder is a pyramid of
bidirectional LSTMs.

Dimensions: B utterances, S frames, S' encoder positions, F features of a frame, I inputs, H units of a direction.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pipeline.models.kernels.loops import run_recurrent
from pipeline.models.layers import positions
from pipeline.models.seq2seq import Modules
from pipeline.models.settings import SpeechSettings
from pipeline.models.speech_attention.settings import AttentionRecogniserConfig

VARIANCE_FLOOR = 1e-2
"""Added to variances, of features whose deviation in the training set is 1, so that silence is not amplified."""


def normalise_and_mask(config: SpeechSettings, frames: Tensor, lengths: Tensor, training: bool) -> Tensor:
    """Normalise frames and, in training, mask some of them (SpecAugment).

    Args:
        config: Chooses normalisation, and number and size of the masks.
        frames: Log-mel features, shape (B, S, F).
        lengths: Frames of each utterance, shape (B,).
        training: Apply SpecAugment.

    Returns:
        Shape (B, S, F), zero behind the end of each utterance.
    """
    frames = (
        subtract_mean(frames, lengths)
        if config.utterance_mean == "removed"
        else positions.zero_padding(frames, lengths)
    )
    if config.utterance_deviation == "one":
        frames = divide_by_deviation(frames, lengths)
    if not training or not (config.time_masks or config.frequency_masks):
        return frames
    times = (config.time_masks, config.time_mask_frames, config.time_mask_share)
    return spec_augment(frames, lengths, times, (config.frequency_masks, config.frequency_mask_bands))


def subtract_mean(frames: Tensor, lengths: Tensor) -> Tensor:
    """Subtract from `frames` (B, S, F) their mean within the `lengths` (B,) of each utterance; padding is zero."""
    frames = positions.zero_padding(frames, lengths)
    return positions.zero_padding(frames - frames.sum(1, keepdim=True) / divisors(lengths), lengths)


def divide_by_deviation(frames: Tensor, lengths: Tensor) -> Tensor:
    """Divide `frames` (B, S, F) of mean 0 by their deviation within the `lengths` (B,) of each utterance."""
    variance = frames.square().sum(1, keepdim=True) / divisors(lengths)
    return frames / (variance + VARIANCE_FLOOR).sqrt()


def divisors(lengths: Tensor) -> Tensor:
    """Return divisors (B, 1, 1) of sums over `lengths` (B,) frames: at least 1, even if an utterance is empty."""
    return lengths.clamp_min(1).view(-1, 1, 1)


def spec_augment(frames: Tensor, lengths: Tensor, times: tuple[int, int, float], bands: tuple[int, int]) -> Tensor:
    """Set spans of time and bands of features to zero (Park et al. 2019, section 2).

    Random numbers come from torch's global generator, which the trainer seeds for every micro-batch.

    Args:
        frames: Shape (B, S, F).
        lengths: Frames of each utterance, shape (B,).
        times: Number of spans, maximum frames of a span, and its maximum share of an utterance.
        bands: Number of bands, and maximum features of a band.

    Returns:
        Shape (B, S, F).
    """
    count, widest, share = times
    widths = (lengths * share).clamp(max=widest)
    in_time = random_spans(lengths.float(), widths, count, frames.shape[1])
    features = torch.full_like(lengths, frames.shape[2]).float()
    in_band = random_spans(features, torch.full_like(features, bands[1]), bands[0], frames.shape[2])
    return frames.masked_fill(in_time.unsqueeze(2) | in_band.unsqueeze(1), 0.0)


def random_spans(room: Tensor, widest: Tensor, count: int, places: int) -> Tensor:
    """Draw `count` spans per row, with widths uniform in 0 … widest, anywhere that they fit.

    Args:
        room: Positions that spans may cover, shape (B,).
        widest: Largest width of a span, shape (B,).
        count: Spans per row.
        places: Positions of the result.

    Returns:
        Mask, shape (B, places), True inside a span.
    """
    draws = torch.rand(2, len(room), count, device=room.device)
    width = (draws[0] * (widest.floor() + 1).unsqueeze(1)).floor()
    first = (draws[1] * (room.unsqueeze(1) - width + 1)).floor()
    place = torch.arange(places, device=room.device)
    return ((place >= first.unsqueeze(2)) & (place < (first + width).unsqueeze(2))).any(1)


class BidirectionalLSTM(nn.Module):
    """One LSTM layer in each direction; frames behind an utterance's end are not read.

    The backward direction reads every utterance reversed within its own length. Neither direction needs packed
    sequences, which torch runs three times slower on a CPU.

    Args:
        inputs: I.
        width: H.
    """

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.ahead = nn.LSTM(inputs, width, batch_first=True)
        self.back = nn.LSTM(inputs, width, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Return states (B, S, 2H), forward direction first, of `x` (B, S, I) within the `lengths` (B,)."""
        indices = positions.reversal_indices(positions.length_mask(lengths, x.shape[1]))
        ahead, _ = run_recurrent(self.ahead, x)
        back, _ = run_recurrent(self.back, positions.gather_positions(x, indices))
        return torch.cat((ahead, positions.gather_positions(back, indices)), dim=-1)


class SpeechEncoder(nn.Module):
    """Encoder from frames to annotations h_j.

    Every BLSTM layer but the first has a residual connection. Max-pooling of width and stride 2 in time follows each of
    the first `pooled_layers`.
    """

    def __init__(self, config: AttentionRecogniserConfig):
        super().__init__()
        self.config, self.output_width = config, config.annotation_width
        widths = [config.features * config.frame_stacking] + [self.output_width] * (config.encoder_layers - 1)
        self.layers = Modules[BidirectionalLSTM](BidirectionalLSTM(width, config.encoder_width) for width in widths)

    def forward(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        frames = normalise_and_mask(self.config, frames, lengths, self.training)
        x, lengths = stack_frames(frames, lengths, self.config.frame_stacking)
        for number, layer in enumerate(self.layers):
            output = layer(x, lengths)
            x = x + output if x.shape == output.shape else output
            if number < self.config.pooled_layers:
                x, lengths = max_pool(x, lengths)
        return positions.zero_padding(x, lengths), positions.visible_mask(lengths, x.shape[1])


def stack_frames(x: Tensor, lengths: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Join `count` neighbouring frames of `x` (B, S, F) into one; return them and their number (B,) per utterance."""
    if count == 1:
        return x, lengths
    x = F.pad(x, (0, 0, 0, -x.shape[1] % count))
    return x.reshape(len(x), -1, count * x.shape[-1]), -(-lengths // count)


def max_pool(x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the larger of every two neighbours in time of `x` (B, S, 2H), and the `lengths` (B,), halved."""
    x = x.masked_fill(~positions.length_mask(lengths, x.shape[1]).unsqueeze(-1), -torch.inf)
    x = F.max_pool1d(x.transpose(1, 2), kernel_size=2, ceil_mode=True).transpose(1, 2)
    lengths = -(-lengths // 2)
    return positions.zero_padding(x, lengths), lengths

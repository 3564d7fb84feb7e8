"""Speech features as a recogniser reads them: normalised per utterance, and masked in training (SpecAugment).

Dimensions: B utterances, S frames, F features.
"""

import torch
from torch import Tensor

from pipeline.models.layers.padding import zero_padding
from pipeline.models.settings import SpeechSettings

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
    frames = subtract_mean(frames, lengths) if config.utterance_mean == "removed" else zero_padding(frames, lengths)
    if config.utterance_deviation == "one":
        frames = divide_by_deviation(frames, lengths)
    if not training or not (config.time_masks or config.frequency_masks):
        return frames
    times = (config.time_masks, config.time_mask_frames, config.time_mask_share)
    return spec_augment(frames, lengths, times, (config.frequency_masks, config.frequency_mask_bands))


def subtract_mean(frames: Tensor, lengths: Tensor) -> Tensor:
    """Subtract from each feature its mean over the utterance's own frames.

    Args:
        frames: Shape (B, S, F).
        lengths: Frames of each utterance, shape (B,).

    Returns:
        Shape (B, S, F), zero behind the end of each utterance.
    """
    frames = zero_padding(frames, lengths)
    return zero_padding(frames - frames.sum(1, keepdim=True) / divisors(lengths), lengths)


def divide_by_deviation(frames: Tensor, lengths: Tensor) -> Tensor:
    """Divide each feature by its standard deviation over the utterance's own frames.

    Args:
        frames: Result of `subtract_mean`, shape (B, S, F).
        lengths: Frames of each utterance, shape (B,).

    Returns:
        Shape (B, S, F).
    """
    variance = frames.square().sum(1, keepdim=True) / divisors(lengths)
    return frames / (variance + VARIANCE_FLOOR).sqrt()


def divisors(lengths: Tensor) -> Tensor:
    """Turn lengths into divisors of sums over frames.

    They are at least 1, because an utterance that only fills up a batch has no frame.

    Args:
        lengths: Frames of each utterance, shape (B,).

    Returns:
        Shape (B, 1, 1).
    """
    return lengths.clamp_min(1).view(-1, 1, 1)


def spec_augment(frames: Tensor, lengths: Tensor, times: tuple[int, int, float], bands: tuple[int, int]) -> Tensor:
    """Set spans of time and bands of features to zero (Park et al. 2019, section 2).

    Random numbers come from torch's global generator, which the trainer seeds for every micro-batch.

    Args:
        frames: Shape (B, S, F).
        lengths: Frames of each utterance, shape (B,).
        times: Number of spans, the most frames of one, and its largest share of an utterance.
        bands: Number of bands, and the most features of one.

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

"""What a model hears: frames normalised by their utterance, and in training masked, where its settings say so."""

import torch
from torch import Tensor

from pipeline.models.layers.reading import zero_behind
from pipeline.models.speech_settings import SpeechSettings

VARIANCE_FLOOR = 1e-2
"""Of features whose deviation in the training set is one: what stands still is not blown up."""


def frames_read(config: SpeechSettings, frames: Tensor, lengths: Tensor, training: bool) -> Tensor:
    """frames (B, S, F), lengths (B,) -> (B, S, F), zero behind the end"""
    frames = centred(frames, lengths) if config.utterance_mean == "removed" else zero_behind(frames, lengths)
    if config.utterance_deviation == "one":
        frames = of_deviation_one(frames, lengths)
    if not training or not (config.time_masks or config.frequency_masks):
        return frames
    times = (config.time_masks, config.time_mask_frames, config.time_mask_share)
    return masked(frames, lengths, times, (config.frequency_masks, config.frequency_mask_bands))


def centred(frames: Tensor, lengths: Tensor) -> Tensor:
    """frames (B, S, F), lengths (B,) -> each feature less its mean over the utterance's own frames, zero behind."""
    frames = zero_behind(frames, lengths)
    return zero_behind(frames - frames.sum(1, keepdim=True) / divisors(lengths), lengths)


def of_deviation_one(frames: Tensor, lengths: Tensor) -> Tensor:
    """Centred frames (B, S, F), zero behind -> each feature over its deviation in the utterance's own frames."""
    variance = frames.square().sum(1, keepdim=True) / divisors(lengths)
    return frames / (variance + VARIANCE_FLOOR).sqrt()


def divisors(lengths: Tensor) -> Tensor:
    """(B,) -> (B, 1, 1), at least 1: an utterance that only fills up a batch has no frame."""
    return lengths.clamp_min(1).view(-1, 1, 1)


def masked(frames: Tensor, lengths: Tensor, times: tuple[int, int, float], bands: tuple[int, int]) -> Tensor:
    """SpecAugment (Park et al. 2019, section 2): stretches of time and bands of (B, S, F) set to zero; lengths (B,).

    Random numbers come from torch's global generator, which the trainer seeds for every micro-batch.

    Args:
        times: stretches, the most frames of one, and its largest share of an utterance.
        bands: bands, and the most features of one.
    """
    count, widest, share = times
    widths = (lengths * share).clamp(max=widest)
    in_time = stretches(lengths.float(), widths, count, frames.shape[1])
    features = torch.full_like(lengths, frames.shape[2]).float()
    in_band = stretches(features, torch.full_like(features, bands[1]), bands[0], frames.shape[2])
    return frames.masked_fill(in_time.unsqueeze(2) | in_band.unsqueeze(1), 0.0)


def stretches(room: Tensor, widest: Tensor, count: int, places: int) -> Tensor:
    """(B, places) bool, True within one of `count` stretches: of a width uniform in 0 … widest (B,), anywhere that
    it fits among the first `room` (B,) places."""
    draws = torch.rand(2, len(room), count, device=room.device)
    width = (draws[0] * (widest.floor() + 1).unsqueeze(1)).floor()
    first = (draws[1] * (room.unsqueeze(1) - width + 1)).floor()
    place = torch.arange(places, device=room.device)
    return ((place >= first.unsqueeze(2)) & (place < (first + width).unsqueeze(2))).any(1)

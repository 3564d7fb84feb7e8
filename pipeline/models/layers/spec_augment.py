"""SpecAugment (Park et al. 2019, section 2): stretches of time and bands of features set to zero, in training.

Random numbers come from torch's global generator, which the trainer seeds for every micro-batch.
"""

import torch
from torch import Tensor


def masked(frames: Tensor, lengths: Tensor, times: tuple[int, int, float], bands: tuple[int, int]) -> Tensor:
    """frames (B, S, F), lengths (B,), means zero.

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

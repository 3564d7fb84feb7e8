"""Speech seen from its own mean: what a microphone or a voice adds to all of an utterance's frames is taken away."""

from torch import Tensor

from pipeline.models.layers.reading import zero_behind


def centred(frames: Tensor, lengths: Tensor) -> Tensor:
    """frames (B, S, F), lengths (B,) -> each feature less its mean over the utterance's own frames, zero behind."""
    frames = zero_behind(frames, lengths)
    return zero_behind(frames - frames.sum(1, keepdim=True) / lengths.view(-1, 1, 1), lengths)

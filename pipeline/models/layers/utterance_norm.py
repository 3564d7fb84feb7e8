"""Speech seen from its own mean, without what a microphone or a voice adds to all of an utterance's frames; and in its
own deviation, which is how far it stands out from the noise behind it."""

from torch import Tensor

from pipeline.models.layers.reading import zero_behind

VARIANCE_FLOOR = 1e-2
"""Of features whose deviation in the training set is one: what stands still is not blown up."""


def centred(frames: Tensor, lengths: Tensor) -> Tensor:
    """frames (B, S, F), lengths (B,) -> each feature less its mean over the utterance's own frames, zero behind."""
    frames = zero_behind(frames, lengths)
    return zero_behind(frames - frames.sum(1, keepdim=True) / lengths.view(-1, 1, 1), lengths)


def of_deviation_one(frames: Tensor, lengths: Tensor) -> Tensor:
    """Centred frames (B, S, F), zero behind -> each feature over its deviation in the utterance's own frames."""
    variance = frames.square().sum(1, keepdim=True) / lengths.view(-1, 1, 1)
    return frames / (variance + VARIANCE_FLOOR).sqrt()

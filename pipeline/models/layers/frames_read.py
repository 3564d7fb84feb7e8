"""What a model hears: frames normalised by their utterance, and in training masked, where its settings say so."""

from torch import Tensor

from pipeline.models.layers.reading import zero_behind
from pipeline.models.layers.spec_augment import masked
from pipeline.models.layers.utterance_norm import centred, of_deviation_one
from pipeline.models.speech_settings import SpeechSettings


def frames_read(config: SpeechSettings, frames: Tensor, lengths: Tensor, training: bool) -> Tensor:
    """frames (B, S, F), lengths (B,) -> (B, S, F), zero behind the end"""
    frames = centred(frames, lengths) if config.utterance_mean == "removed" else zero_behind(frames, lengths)
    if config.utterance_deviation == "one":
        frames = of_deviation_one(frames, lengths)
    if not training or not (config.time_masks or config.frequency_masks):
        return frames
    times = (config.time_masks, config.time_mask_frames, config.time_mask_share)
    return masked(frames, lengths, times, (config.frequency_masks, config.frequency_mask_bands))

"""Log-mel features, by kaldi-native-fbank: Cold Fusion, section 4.3, and its mel filter banks.

Windows of 25 ms (Povey's) every 10 ms, pre-emphasis 0.97, no dither, FEATURES triangular filters from 20 Hz up, natural
logarithm of power; samples are in [-1, 1].
"""

import kaldi_native_fbank
import numpy as np

from pipeline.data.store.frame_store import FEATURES, FRAMES_PER_SECOND

WINDOW_MS, SHIFT_MS = 25.0, 1000 / FRAMES_PER_SECOND
LOW_HZ = 20.0


class MelFilters:
    """Features of audio of one rate. high_hz: upper edge of the filters."""

    def __init__(self, sample_rate: int, high_hz: float):
        self.options = kaldi_native_fbank.FbankOptions()
        self.options.frame_opts.samp_freq = sample_rate
        self.options.frame_opts.frame_length_ms = WINDOW_MS
        self.options.frame_opts.frame_shift_ms = SHIFT_MS
        self.options.frame_opts.dither = 0.0
        self.options.mel_opts.num_bins = FEATURES
        self.options.mel_opts.low_freq = LOW_HZ
        self.options.mel_opts.high_freq = high_hz
        self.sample_rate = sample_rate

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """(T, FEATURES) float32 of samples (n,) float32; no frame reaches over the end."""
        bank = kaldi_native_fbank.OnlineFbank(self.options)
        bank.accept_waveform(self.sample_rate, samples.tolist())  # a list is taken over faster than an array
        bank.input_finished()
        frames = [bank.get_frame(place) for place in range(bank.num_frames_ready)]
        return np.stack(frames) if frames else np.empty((0, FEATURES), np.float32)

"""Speech heard faster or slower (Ko et al. 2015): resampled, so that its pitch and its formants move along."""

import numpy as np


def at_speed(samples: np.ndarray, speed: float) -> np.ndarray:
    """samples (n,) float32 -> (n / speed,) float32 of the same rate, without aliases: the spectrum of all of it is cut
    off, or filled up with zeros, above the lower of both Nyquist frequencies."""
    if speed == 1 or not len(samples):
        return samples
    length = max(1, round(len(samples) / speed))
    return (np.fft.irfft(np.fft.rfft(samples), length) * (length / len(samples))).astype(np.float32)

"""The background noises of a corpus: coloured and pulsing noise made from a seed, and babble of its own speakers.

Cold Fusion, section 4.3, adds "random background noise" without saying which.
"""

from collections.abc import Iterable, Iterator
from functools import reduce

import numpy as np

SECONDS = 10
EXPONENTS = (0.0, 1.0, 2.0)
"""Power falls with frequency to these powers: white, pink and brown noise."""
PULSES_HZ = (None, 2.0, 8.0)
"""Steady, or swelling so many times a second."""
BABBLES, VOICES = 6, 6


def coloured_noises(sample_rate: int, seed: int) -> Iterator[np.ndarray]:
    """Samples (n,) float32 of each colour, steady and pulsing."""
    rng = np.random.default_rng(seed)
    count = SECONDS * sample_rate
    time = np.arange(count) / sample_rate
    for exponent in EXPONENTS:
        for pulses in PULSES_HZ:
            spectrum = np.fft.rfft(rng.standard_normal(count))
            spectrum[1:] /= np.arange(1, len(spectrum)) ** (exponent / 2)
            spectrum[0] = 0
            noise = np.fft.irfft(spectrum, count)
            swell = 1 if pulses is None else 0.55 + 0.45 * np.sin(2 * np.pi * pulses * time)
            yield scaled(noise * swell)


def babble(voices: Iterable[np.ndarray], sample_rate: int) -> np.ndarray:
    """Samples (n,) float32 of several utterances at once, each repeated to fill the time."""
    count = SECONDS * sample_rate
    return scaled(reduce(np.add, (np.resize(scaled(voice), count) for voice in voices)))


def scaled(samples: np.ndarray) -> np.ndarray:
    """At the root mean square 0.1."""
    return (0.1 * samples / max(float(np.sqrt(np.mean(samples**2))), 1e-9)).astype(np.float32)

"""Recordings of any rate and number of channels, as features of the rate that a model was trained on."""

import logging
from pathlib import Path

import numpy as np
import soundfile

from pipeline.core.errors import UserError
from pipeline.core.records.corpus import Statistics
from pipeline.data.speech.audio import LARGEST, LOUDEST, in_unit_range
from pipeline.data.speech.frontend import MelFilters, Moments, normalised
from pipeline.data.store.sequence_store import FRAME_DTYPE

log = logging.getLogger(__name__)

CANCELLED = 0.5
"""Power of the mean of channels, as a share of that of unrelated ones, below which they cancel out."""
SILENT = 1e-4
"""Power of a channel, as a share of the loudest one's, below which it is left out: -40 dB."""
QUIETEST = 1e-4
"""Largest sample of silence: three steps of 16 bits."""
HIGHEST_RATE = 1_000_000
"""Hz, above which nobody records; what a damaged header says would be filled up with gigabytes of silence."""


def read_sound(path: Path) -> tuple[np.ndarray, int]:
    """Samples, (n,) or (n, channels) float32, and their rate in Hz. Raises UserError when it is no sound."""
    try:
        return soundfile.read(path, dtype="float32")
    except (soundfile.SoundFileError, OSError, MemoryError) as error:  # of a length that a damaged header says
        fault = "no audio that can be read (WAV, FLAC, OGG, …)" if Path(path).is_file() else "no such file"
        raise UserError(f"{path}: {fault}") from error


def features(name: str, samples: np.ndarray, rate: int, model_rate: int, high_hz: float) -> np.ndarray:
    """(T, FEATURES) float16 of samples (n,) or (n, channels) in [-1, 1].

    Raises:
        UserError: a sample is no number or absurd, the rate is none, or there is less than one window of sound.
    """
    samples = np.asarray(samples)
    if rate > HIGHEST_RATE:
        raise UserError(f"{name}: says that it has {rate:,} samples a second, which no recording has; is it damaged?")
    if samples.ndim not in (1, 2) or rate < 1:
        raise UserError(f"{name}: samples of shape {samples.shape} at {rate} Hz; give (n,) or (n, channels)")
    samples = samples.astype(np.float64)
    loudest = np.abs(samples).max(initial=0)
    if not np.isfinite(samples).all() or loudest > LARGEST:
        raise UserError(f"{name}: has samples that are no sound (not finite, or far beyond ±1)")
    if loudest > LOUDEST:
        log.warning("%s: is in the units of 16 bits, not in [-1, 1]; it is scaled", name)
    elif loudest > 1:
        log.warning("%s: reaches %.1f, beyond ±1; if its unit is that of 16 bits, divide it by 32768", name, loudest)
    if len(samples) and (offset := np.abs(samples.mean(axis=0)).max()) > samples.std(axis=0).max() > 0:
        log.warning("%s: has a constant offset of %.3g, above its sound; subtract the mean", name, offset)
    if loudest < QUIETEST and len(samples):
        log.warning("%s: is silent", name)
    mono = mixed(name, in_unit_range(samples))
    frames = MelFilters(model_rate, high_hz)(resampled(mono, rate, model_rate).astype(np.float32))
    if not len(frames):
        raise UserError(f"{name}: {len(mono) / rate:.3f} s long, too short for a single frame of 25 ms")
    return frames.astype(FRAME_DTYPE)


def mixed(name: str, samples: np.ndarray) -> np.ndarray:
    """Return one channel of a recording: the mean of those with sound, or the loudest if they cancel out.

    Args:
        name: The recording, for the log.
        samples: Shape (n,) or (n, channels).
    """
    if not len(samples):
        return np.zeros(0)
    channels = samples.reshape(len(samples), -1)
    power = channels.var(axis=0)  # without a constant offset, which is no sound
    loudest = int(power.argmax())
    heard = power >= SILENT * power[loudest]
    mean = channels[:, heard].mean(axis=1)
    if mean.var() >= CANCELLED * power[heard].mean() / heard.sum():
        return mean
    log.warning("%s: its channels cancel out; channel %d alone is heard", name, loudest + 1)
    return channels[:, loudest]


def of_one_speaker(utterances: list[np.ndarray], wanted: Statistics) -> list[np.ndarray]:
    """Features of all that somebody says, with the mean and deviation that every speaker had in training."""
    heard = Moments()
    for frames in utterances:
        heard.add(frames)
    return [normalised(frames, heard.statistics(), wanted) for frames in utterances]


def resampled(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """(n,) at `rate` Hz -> (n * wanted / rate,) at `wanted` Hz, limited to the band that both can hold.

    By the Fourier transform of all of it, with a second of silence at the end, so that it does not run into itself.
    """
    if rate == wanted or not len(samples):
        return samples
    padded = np.append(samples, np.zeros(-len(samples) % rate + rate))  # whole seconds: both lengths are whole
    length = len(padded) // rate * wanted
    spectrum = np.fft.rfft(padded)[: length // 2 + 1]
    return np.fft.irfft(spectrum, length)[: round(len(samples) * wanted / rate)] * (wanted / rate)

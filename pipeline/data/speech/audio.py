"""Reading the audio of an utterance, a whole file or a stretch of one: FLAC, WAV, OGG, NIST SPHERE not `shorten`ed."""

import contextlib
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TypeVar

import numpy as np
import soundfile

from pipeline.core.retries import read_with_retries
from pipeline.data.speech.manifest import Utterance

Found = TypeVar("Found")
TOLERANCE_S = 0.02  # two frames: manifests round
LARGEST = 2.0**15
"""Largest sample of files of floats in the units of 16 bits, which are scaled."""
LOUDEST = 8.0
"""Largest sample of files of floats in [-1, 1], which may be clipped later; what is beyond has other units."""


class RejectedError(Exception):
    """An utterance that can't be used; the message is the reason by which it is counted."""


def read_audio(utterance: Utterance, sample_rate: int) -> np.ndarray:
    """Samples (n,) float32, finite, in [-1, 1] but for files of floats that go slightly beyond.

    Raises:
        RejectedError: the file is missing, damaged, of another rate, of several channels, or too short, or has a
            sample that is none.
        UserError: it can't be read.
    """
    wanted = round(utterance.seconds * sample_rate)
    try:
        samples = decoded(utterance.audio, partial(stretch, utterance=utterance, sample_rate=sample_rate))
    except (soundfile.SoundFileError, FileNotFoundError) as error:
        raise RejectedError(fault_of(utterance.audio)) from error
    if len(samples) < wanted - TOLERANCE_S * sample_rate:
        raise RejectedError("truncated audio")
    if not np.isfinite(samples).all():
        raise RejectedError("samples that are not finite")
    if len(samples) and np.abs(samples).max() > LARGEST:
        raise RejectedError("absurd samples")
    return in_unit_range(samples)


def in_unit_range(samples: np.ndarray) -> np.ndarray:
    """Return samples of at most `LARGEST`, of any shape, scaled to [-1, 1] if they are in the units of 16 bits."""
    if samples.size and np.abs(samples).max() > LOUDEST:
        return (samples / LARGEST).astype(samples.dtype)
    return samples


def decoded(audio: Path, read: Callable[[Path | BytesIO], Found | None]) -> Found:
    """What `read` finds in an audio file; again, in its bytes, when that is None or fails.

    The library takes a disk's fault for the file's own, and its end for the audio's.

    Raises:
        FileNotFoundError, soundfile.SoundFileError: there is no such file, or it is damaged.
        UserError: it can't be read.
    """
    with contextlib.suppress(soundfile.SoundFileError, OSError):
        if (found := read(audio)) is not None:
            return found
    again = read(BytesIO(read_with_retries(audio)))
    assert again is not None
    return again


def stretch(source: Path | BytesIO, utterance: Utterance, sample_rate: int) -> np.ndarray | None:
    """Its samples, or None when a file on disk seems to have less. Raises RejectedError as `read_audio` does."""
    with soundfile.SoundFile(source) as file:
        if file.samplerate != sample_rate:
            raise RejectedError("wrong rate")
        if file.channels != 1:
            raise RejectedError("several channels")
        wanted = round(utterance.seconds * sample_rate)
        file.seek(min(round(utterance.start * sample_rate), file.frames))
        samples = file.read(wanted, dtype="float32")
    return None if len(samples) < wanted and isinstance(source, Path) else samples


def fault_of(path: Path) -> str:
    """Why a file can't be opened."""
    if not path.is_file():
        return "missing audio"
    with open(path, "rb") as file:
        header = file.read(1024)
    shortened = header.startswith(b"NIST_1A") and b"shorten" in header
    return "SPHERE audio compressed by shorten, to be converted" if shortened else "unreadable audio"


def at_speed(samples: np.ndarray, speed: float) -> np.ndarray:
    """Heard faster or slower (Ko et al. 2015), so that pitch and formants move along: (n,) float32 -> (n / speed,).

    Without aliases: the spectrum of all of it is cut off, or filled up with zeros, above the lower Nyquist frequency.
    """
    if speed == 1 or not len(samples):
        return samples
    length = max(1, round(len(samples) / speed))
    return (np.fft.irfft(np.fft.rfft(samples), length) * (length / len(samples))).astype(np.float32)


def seconds_of(audio: Path) -> float:
    """Length of a file; 0 if it is none, and then it is left out and counted when features are computed."""
    try:
        return decoded(audio, lambda source: soundfile.info(source).duration)
    except (soundfile.SoundFileError, FileNotFoundError):
        return 0.0

"""Read utterances, whole files or segments: FLAC, WAV, OGG, and NIST SPHERE without `shorten`."""

import contextlib
import errno
import os
import re
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
TOLERANCE_S = 0.02
"""Missing seconds that are ignored, two frames: manifests round."""
LARGEST = 2.0**15
"""Largest sample of float files in 16-bit units, which are scaled."""
LOUDEST = 8.0
"""Largest sample of float files in [-1, 1], which may be clipped later; larger ones have other units."""
QUIETEST = 1e-4
"""Largest sample of silence: three steps of 16 bits."""
LARGEST_OF_8_BITS = 2.0**7
"""Recordings in 16-bit units are seldom so quiet: 8-bit units are likelier."""

UNKNOWN_FRAMES = (1 << 63) - 1
"""Number of frames that the library gives for a file which does not state it."""
SAMPLES_OF_FLAC = (1 << 36) - 1
"""Bits of the number of samples in the second word of a FLAC file's description."""

CUT_OFF = re.compile(r"^ *(?:data|SSND|Data Size) *: (\d+) \(should be (\d+)\)", re.MULTILINE)
"""Words of libsndfile about a header with another size than the file."""
STREAMED = 2**31 - 2**16
"""Least size that stands for "not known" in the header of a streamed recording; programs write different ones."""


class RejectedError(Exception):
    """An utterance that can't be used; the message is the reason under which it is counted."""


def read_audio(utterance: Utterance, sample_rate: int) -> np.ndarray:
    """Read the samples (n,) of an `utterance` at a `sample_rate`, scaled to [-1, 1]; see `read_samples`."""
    return in_unit_range(read_samples(utterance, sample_rate))


def read_samples(utterance: Utterance, sample_rate: int) -> np.ndarray:
    """Read the samples of an utterance in the units of its file.

    Returns:
        Samples (n,) float32, finite; of integer files in [-1, 1].

    Raises:
        RejectedError: The file is missing, damaged, too short, or of another format, or has bad samples.
        UserError: The disk can't read the file.
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
    if loudness(samples) > LARGEST:
        raise RejectedError("absurd samples")
    return samples


def in_unit_range(samples: np.ndarray) -> np.ndarray:
    """Scale samples of any shape in 16-bit units to [-1, 1]; others stay."""
    if loudness(samples) > LOUDEST:
        return (samples / LARGEST).astype(samples.dtype)
    return samples


def loudness(samples: np.ndarray) -> float:
    """Return the largest absolute sample, 0 without any."""
    return float(np.abs(samples).max(initial=0))


def decoded(audio: Path, read: Callable[[Path | BytesIO], Found | None]) -> Found:
    """Apply `read` to an audio file, and again to its bytes if the first result is None or an error.

    The library takes a read error of the disk for damage, and the end of a failed read for the end of the audio.

    Args:
        audio: File to read.
        read: Reader of a path or of the bytes in memory; None from a path means that samples are missing.

    Returns:
        The first result that is not None.

    Raises:
        FileNotFoundError: The file is missing.
        soundfile.SoundFileError: The file is damaged.
        UserError: The disk can't read it.
    """
    if not is_possible_name(audio):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(audio))
    with contextlib.suppress(soundfile.SoundFileError, OSError):  # read again below, with retries
        if (found := read(audio)) is not None:
            return found
    again = read(BytesIO(read_with_retries(audio)))
    assert again is not None
    return again


def is_possible_name(path: Path) -> bool:
    """Return whether a file can have a name, which a damaged table may give."""
    try:
        os.lstat(path)
    except ValueError:  # it holds a NUL
        return False
    except OSError as error:
        return error.errno not in (errno.ENAMETOOLONG, errno.ENOTDIR)
    return True


def stretch(source: Path | BytesIO, utterance: Utterance, sample_rate: int) -> np.ndarray | None:
    """Return the samples of an `utterance` in `source`, a file or bytes, at a `sample_rate`; None if a file has fewer.

    Raises:
        RejectedError: The file has another rate or several channels.
    """
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
    """Return the reason why a file can't be opened."""
    if not is_possible_name(path) or not path.is_file():
        return "missing audio"
    with open(path, "rb") as file:
        header = file.read(1024)
    if header.startswith(b"NIST_1A") and b"shorten" in header:
        return "SPHERE audio compressed by shorten, to be converted"
    return "FLAC audio without its length, to be converted" if lacks_length(header) else "unreadable audio"


def lacks_length(header: bytes) -> bool:
    """Return whether a `header` is of a FLAC file that was written to a pipe, whose number of samples is 0."""
    described = header[18:26]  # rate, channels, bits and number of samples
    return header.startswith(b"fLaC") and len(described) == 8 and not int.from_bytes(described) & SAMPLES_OF_FLAC


def sizes_of_cut_off(extra_info: str) -> tuple[int, int] | None:
    """Return the bytes of sound that a header announces and those present, by libsndfile's `extra_info` about a file.

    None if they agree, or if the header is of a stream, whose end it does not know.
    """
    found = CUT_OFF.search(extra_info)
    return (int(found[1]), int(found[2])) if found and int(found[1]) < STREAMED else None


def at_speed(samples: np.ndarray, speed: float) -> np.ndarray:
    """Return `samples` (n,) resampled to (n / `speed`,), which changes pitch and formants too (Ko et al. 2015).

    The spectrum of the whole signal is truncated or zero-padded above the lower Nyquist frequency, so nothing aliases.
    """
    if speed == 1 or not len(samples):
        return samples
    length = max(1, round(len(samples) / speed))
    return (np.fft.irfft(np.fft.rfft(samples), length) * (length / len(samples))).astype(np.float32)


def flac(samples: np.ndarray, sample_rate: int) -> bytes:
    """Encode int16 `samples` (n,) or (n, channels) at a `sample_rate`; the same samples give the same bytes."""
    buffer = BytesIO()
    soundfile.write(buffer, samples, sample_rate, subtype="PCM_16", format="FLAC")
    return buffer.getvalue()


def seconds_of(audio: Path) -> float:
    """Return the length of a file in seconds; 0 if it can't be read, which the stage `features` reports."""
    try:
        found = decoded(audio, soundfile.info)
        return 0.0 if found.frames == UNKNOWN_FRAMES else found.duration
    except (soundfile.SoundFileError, FileNotFoundError):
        return 0.0

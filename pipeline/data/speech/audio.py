"""Reading the audio of an utterance, a whole file or a stretch of one: FLAC, WAV, NIST SPHERE not `shorten`ed."""

from pathlib import Path

import numpy as np
import soundfile

from pipeline.data.speech.manifest import Utterance

TOLERANCE_S = 0.02  # two frames: manifests round
LARGEST = 2.0**15
"""Of a sample: files of floats may be in the units of 16 bits, and nothing sound is beyond them."""


class RejectedError(Exception):
    """An utterance that can't be used; the message is the reason by which it is counted."""


def read_audio(utterance: Utterance, sample_rate: int) -> np.ndarray:
    """Samples (n,) float32, finite, in [-1, 1] but for files of floats that go beyond.

    Raises:
        RejectedError: the file is missing, unreadable, of another rate, of several channels, or too short, or has a
            sample that is none.
    """
    try:
        with soundfile.SoundFile(utterance.audio) as file:
            if file.samplerate != sample_rate:
                raise RejectedError("wrong rate")
            if file.channels != 1:
                raise RejectedError("several channels")
            wanted = round(utterance.seconds * sample_rate)
            file.seek(min(round(utterance.start * sample_rate), file.frames))
            samples = file.read(wanted, dtype="float32")
    except (soundfile.SoundFileError, OSError) as error:
        raise RejectedError(fault_of(utterance.audio)) from error
    if len(samples) < wanted - TOLERANCE_S * sample_rate:
        raise RejectedError("truncated audio")
    if not np.isfinite(samples).all():
        raise RejectedError("samples that are not finite")
    if len(samples) and np.abs(samples).max() > LARGEST:
        raise RejectedError("absurd samples")
    return samples


def fault_of(path: Path) -> str:
    """Why a file can't be opened."""
    if not path.is_file():
        return "missing audio"
    with open(path, "rb") as file:
        header = file.read(1024)
    shortened = header.startswith(b"NIST_1A") and b"shorten" in header
    return "SPHERE audio compressed by shorten, to be converted" if shortened else "unreadable audio"

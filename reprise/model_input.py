"""Text and sound of a user, at any sampling rate, prepared in memory like the corpus of a model."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import soundfile
from pydantic import Field

from pipeline.core.errors import UserError
from pipeline.core.records.corpus import Statistics
from pipeline.core.schema import Closed
from pipeline.data.batches.parallel_batches import ParallelSplit
from pipeline.data.batches.speech_batches import SpeechSplit
from pipeline.data.dataset import AnyDataset, SampleRate, Segmenter, TokeniserName
from pipeline.data.sequence_store import FRAME_DTYPE, FrameStore, TokenStore
from pipeline.data.speech.audio import (
    LARGEST,
    LARGEST_OF_8_BITS,
    LOUDEST,
    QUIETEST,
    in_unit_range,
    sizes_of_cut_off,
)
from pipeline.data.speech.frontend import MelFilters, Moments, normalised
from pipeline.data.text.cleaning import BadPairError, decode, tokenise_line
from pipeline.data.text.tokenisation import Tokenisation

log = logging.getLogger(__name__)

CANCELLED = 0.5
"""Power of the mean of channels, as a share of that of unrelated ones, below which they cancel out."""
SILENT = 1e-4
"""Power of a channel, as a share of the loudest one's, below which it is left out: -40 dB."""
HIGHEST_RATE = 1_000_000
"""Hz; a higher rate comes from a damaged header, and would be padded with gigabytes of silence."""
SHORT = 2**15
"""Values of a signed integer of 16 bits: from -SHORT to SHORT - 1."""


def read_sound(path: Path) -> tuple[np.ndarray, int]:
    """Read the samples of an audio file.

    Args:
        path: WAV, FLAC or OGG.

    Returns:
        Samples, shape (n,) or (n, channels) float32, and their rate in Hz.

    Raises:
        UserError: The file is missing or no audio.
    """
    try:
        with soundfile.SoundFile(path) as file:
            samples = file.read(dtype="float32")
            if sizes := sizes_of_cut_off(file.extra_info):
                log.warning("%s: its header says %d bytes of sound, it has %d; is it cut off?", path, *sizes)
            return samples, file.samplerate
    except (soundfile.SoundFileError, OSError, MemoryError) as error:  # a damaged header may claim any length
        missing = "is a folder" if os.path.isdir(path) else "no such file"
        fault = "no audio that can be read (WAV, FLAC, OGG, …)" if os.path.isfile(path) else missing
        raise UserError(f"{path}: {fault}") from error


def features(name: str, samples: np.ndarray, rate: int, model_rate: int, high_hz: float) -> np.ndarray:
    """Compute the mel features of a recording.

    Args:
        name: The recording, for messages.
        samples: Shape (n,) or (n, channels), in [-1, 1], or integers as `from_integers` takes them.
        rate: Sampling rate in Hz.
        model_rate: Sampling rate of the model in Hz.
        high_hz: Upper edge of the mel filters in Hz.

    Returns:
        Features, shape (T, FEATURES) float16.

    Raises:
        UserError: A sample is not finite or far out of range, shape or rate are invalid, or there is no whole window.
    """
    samples = np.asarray(samples)
    if rate > HIGHEST_RATE:
        raise UserError(f"{name}: has a rate of {rate:,} Hz, which no recording has; check whether the file is damaged")
    is_transposed = samples.ndim == 2 and 0 < samples.shape[0] < samples.shape[1]  # as torchaudio loads them
    if samples.ndim not in (1, 2) or is_transposed or not rate >= 1 or rate != int(rate):
        raise UserError(
            f"{name}: samples of shape {samples.shape} at {rate} Hz; give (n,) or (n, channels) at whole Hz"
        )
    rate = int(rate)  # some readers return a float
    samples = from_integers(name, samples) if np.issubdtype(samples.dtype, np.integer) else samples.astype(np.float64)
    loudest = np.abs(samples).max(initial=0)
    if not np.isfinite(samples).all() or loudest > LARGEST:
        raise UserError(f"{name}: has samples that are not finite or far beyond ±1; convert it to WAV again")
    if LARGEST_OF_8_BITS >= loudest > LOUDEST:
        log.warning("%s: reaches %.0f; scaling it as 16 bits; if it has 8 bits, divide it by 128", name, loudest)
    elif loudest > LOUDEST:
        log.warning("%s: has samples of 16 bits, not in [-1, 1]; scaling them", name)
    elif loudest > 1:
        log.warning("%s: reaches %.1f, beyond ±1; if its samples have 16 bits, divide them by 32768", name, loudest)
    if len(samples) and (offset := np.abs(samples.mean(axis=0)).max()) > samples.std(axis=0).max() > 0:
        log.warning("%s: has a constant offset of %.3g, above its sound; subtract the mean", name, offset)
    if loudest < QUIETEST and len(samples):
        log.warning("%s: is silent", name)
    mono = mix_channels(name, in_unit_range(samples))
    frames = MelFilters(model_rate, high_hz)(resample(mono, rate, model_rate).astype(np.float32))
    if not len(frames):
        raise UserError(f"{name}: {len(mono) / rate:.3f} s are too short for a frame of 25 ms")
    return frames.astype(FRAME_DTYPE)


def from_integers(name: str, samples: np.ndarray) -> np.ndarray:
    """Return integers scaled to [-1, 1] by their type; unsigned ones are silent at the middle of their range.

    Wider ones with values of 16 bits are scaled as such, with a warning: by their type they would be silent.

    Args:
        name: The recording, for the log.
        samples: Integers of any shape.
    """
    kind = samples.dtype
    if kind.itemsize > 2 and kind.kind == "i" and samples.any() and samples.min() >= -SHORT and samples.max() < SHORT:
        log.warning("%s: has samples of 16 bits in integers of %d; scaling them as 16 bits", name, 8 * kind.itemsize)
        samples = samples.astype(np.int16)
    limits = np.iinfo(samples.dtype)
    middle = (limits.min + limits.max + 1) // 2
    return (samples.astype(np.float64) - middle) / (limits.max + 1 - middle)


def mix_channels(name: str, samples: np.ndarray) -> np.ndarray:
    """Return one channel (n,) of `samples` (n,) or (n, channels) of the recording `name`, for the log.

    It is the mean of the channels with sound, or the loudest if they cancel out.
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
    log.warning("%s: its channels cancel out; using channel %d only", name, loudest + 1)
    return channels[:, loudest]


def normalise_speaker(utterances: list[np.ndarray], wanted: Statistics) -> list[np.ndarray]:
    """Normalise features of one speaker to the mean and deviation of the training data.

    Args:
        utterances: Features, each (T, FEATURES).
        wanted: Statistics of the training data.

    Returns:
        Normalised features of the same shapes.
    """
    heard = Moments()
    for frames in utterances:
        heard.add(frames)
    return [normalised(frames, heard.statistics(), wanted) for frames in utterances]


def resample(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """Resample a recording by a Fourier transform; the band is limited to what both rates can hold.

    A second of silence at the end prevents wrap-around.

    Args:
        samples: Shape (n,).
        rate: Their rate in Hz.
        wanted: Rate of the result in Hz.

    Returns:
        Samples, shape (n * wanted / rate,).
    """
    if rate == wanted or not len(samples):
        return samples
    padded = np.append(samples, np.zeros(-len(samples) % rate + rate))  # whole seconds: both lengths are whole
    length = len(padded) // rate * wanted
    spectrum = np.fft.rfft(padded)[: length // 2 + 1]
    return np.fft.irfft(spectrum, length)[: round(len(samples) * wanted / rate)] * (wanted / rate)


BRACKETS = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
"""Treebanks write these instead of parentheses in the text."""
Form = Literal["sentences", "trees", "speech", "characters"]


class Preparation(Closed):
    """Facts of the dataset of a model that its use on other text or sound needs."""

    form: Form = Field(description="Form of the dataset")
    src: str = Field(description="Source language, or `speech`")
    tgt: str = Field(description="Target language, or `brackets`")
    tokeniser: TokeniserName = Field(default="moses", description="Tokeniser of the text")
    segmenter: Segmenter | None = Field(default=None, description="Segmenter of Chinese words")
    lowercase: bool = Field(default=False, description="Lower-case tokenised text")
    sample_rate: SampleRate | None = Field(default=None, description="Sampling rate of the training data, in Hz")
    high_hz: Annotated[float, Field(ge=1000, le=500_000)] | None = Field(
        default=None, description="Upper edge of the mel filters, in Hz"
    )
    max_seconds: float | None = Field(default=None, description="Seconds of the longest training utterance")

    @classmethod
    def of(cls, dataset: AnyDataset) -> "Preparation":
        """Collect the facts of a dataset."""
        src, tgt = dataset.languages[0], dataset.languages[-1]
        named = {name: getattr(dataset, name) for name in cls.model_fields if hasattr(dataset, name)}
        return cls.model_validate(named | {"src": src, "tgt": tgt})

    @property
    def tokenisation(self) -> Tokenisation:
        """Return the tokenisation of its text."""
        return Tokenisation(self.tokeniser, self.segmenter, self.lowercase)

    def tokens(self, line: str) -> str:
        """Tokenise a line of source text.

        Sentences to parse are tokenised already; their parentheses become -LRB- and -RRB-.

        Returns:
            Tokens with single spaces; empty if there are no words.
        """
        try:
            text = decode(line.encode("utf-8", "replace"))
            if self.form == "trees":
                return " ".join(text.translate(BRACKETS).split())
            return tokenise_line(text, self.src, self.tokenisation)
        except BadPairError:
            return ""

    def text(self, tokens: str) -> str:
        """Detokenise a line of the target side."""
        return self.tokenisation.text(tokens, self.tgt)


class GivenTokens(TokenStore):
    """Token ids of sentences in memory."""

    def __init__(self, sentences: Sequence[Sequence[int]]):
        self.offsets = ends(sentences)
        self.values: np.ndarray = np.array([token for sentence in sentences for token in sentence], dtype=np.int64)


class GivenFrames(FrameStore):
    """Features of utterances in memory, each (T, features) float16."""

    def __init__(self, utterances: Sequence[np.ndarray]):
        self.offsets = ends(utterances)
        self.values: np.ndarray = np.concatenate(utterances)


def ends(parts: Sequence[Sequence[int]] | Sequence[np.ndarray]) -> np.ndarray:
    """Return the offsets of N concatenated sequences and their end, shape (N + 1,) int64."""
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


class GivenText(ParallelSplit):
    """Sentences without a translation."""

    def __init__(self, name: str, sentences: Sequence[Sequence[int]]):
        self.name, self.src, self.tgt = name, GivenTokens(sentences), GivenTokens([()] * len(sentences))
        self.src_lengths, self.tgt_lengths = self.src.lengths() + 1, self.tgt.lengths() + 1


class GivenSpeech(SpeechSplit):
    """Utterances without a transcript, normalised by the statistics of the model's training."""

    def __init__(self, name: str, utterances: Sequence[np.ndarray], statistics: Statistics):
        self.name, self.src, self.tgt = name, GivenFrames(utterances), GivenTokens([()] * len(utterances))
        self.mean, self.deviation = (np.array(values, np.float32) for values in (statistics.mean, statistics.deviation))
        self.src_lengths, self.tgt_lengths = self.src.lengths(), self.tgt.lengths() + 1

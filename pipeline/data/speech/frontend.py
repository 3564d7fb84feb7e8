"""Acoustic front end: log-mel features, normalisation by speaker, and background noises.

Features follow Cold Fusion, section 4.3, with kaldi-native-fbank: Povey windows of 25 ms every 10 ms, pre-emphasis
0.97, no dither, FEATURES triangular filters from 20 Hz up, natural logarithm of power. Samples are in [-1, 1].

Normalisation is cepstral mean and variance normalisation (CMVN) by speaker, of log-mel features. It removes the effect
of voice, microphone and room. A speaker gets the mean and deviation of the training set, not zero and one, so the
features stay those of a power spectrum, to which noise can be added. Speakers must be known, transcripts need not be.

Cold Fusion, section 4.3, adds "random background noise" without naming it. Here it is coloured and pulsing noise from
a seed, and babble of the corpus' own speakers.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

import kaldi_native_fbank
import numpy as np

from pipeline.core.records.corpus import Statistics
from pipeline.data.dataset import SpokenDataset, SpokenRecord
from pipeline.data.encoded_files import NOISE_STEM
from pipeline.data.sequence_store import FEATURES, FRAME_DTYPE, FRAMES_PER_SECOND, FrameStore, write_frames
from pipeline.data.speech.audio import (
    RejectedError,
    at_speed,
    fault_of,
    in_unit_range,
    loudness,
    read_audio,
    read_samples,
    seconds_of,
)
from pipeline.data.speech.manifest import Utterance, read_manifest
from pipeline.data.text.vocabulary import to_alphabet

WINDOW_MS, SHIFT_MS = 25.0, 1000 / FRAMES_PER_SECOND
LOW_HZ = 20.0
LEAST_DEVIATION = 0.3
"""Smallest deviation of a speaker, relative to training: bands that a speed above one empties are not amplified."""
NOISE_SECONDS, NOISE_SEED = 10, 1
EXPONENTS = (0.0, 1.0, 2.0)
"""Exponents by which power falls with frequency: white, pink and brown noise."""
PULSES_HZ = (None, 2.0, 8.0)
"""Pulses per second; None = steady noise."""
BABBLES, VOICES = 6, 6
"""Number of babble noises, and of voices in each."""


class MelFilters:
    """Mel filter bank for audio of one rate.

    Args:
        sample_rate: Rate in Hz.
        high_hz: Upper edge of the highest filter in Hz.
    """

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
        """Return the features (T, FEATURES) float32 of samples (n,) float32; frames end within the samples."""
        bank = kaldi_native_fbank.OnlineFbank(self.options)
        bank.accept_waveform(self.sample_rate, samples.tolist())  # a list is copied faster than an array
        bank.input_finished()
        frames = [bank.get_frame(place) for place in range(bank.num_frames_ready)]
        return np.stack(frames) if frames else np.empty((0, FEATURES), np.float32)


class KeptUtterance(NamedTuple):
    """An utterance that is kept.

    Attributes:
        text: Its spelling.
        features: Its features, (T, FEATURES) float16.
        loudness: Largest absolute sample in the units of its file.
    """

    text: str
    features: np.ndarray
    loudness: float


def features_of(
    part: list[Utterance], dataset: SpokenRecord, speeds: list[float]
) -> list[tuple[Utterance, KeptUtterance | str]]:
    """Compute the features of each utterance at each speed in turn.

    Args:
        part: Utterances.
        dataset: Speech corpus, which sets rate and limits.
        speeds: Factors; above one is faster.

    Returns:
        For each utterance and speed: the utterance with its new length, and what was heard or the reason why it is left
        out.
    """
    filters = MelFilters(dataset.sample_rate, dataset.high_hz)
    results: list[tuple[Utterance, KeptUtterance | str]] = []
    for utterance, speed in product(part, speeds):
        heard = replace(utterance, seconds=utterance.seconds / speed)
        try:
            results.append((heard, features_of_one(utterance, dataset, filters, speed)))
        except RejectedError as reason:
            results.append((heard, str(reason)))
    return results


def features_of_one(utterance: Utterance, dataset: SpokenRecord, filters: MelFilters, speed: float) -> KeptUtterance:
    """Return spelling and features of an `utterance` at one `speed`; `dataset` sets limits, `filters` its rate.

    Raises:
        RejectedError: The text or audio can't be used; the message is the reason.
    """
    text, strange = to_alphabet(utterance.text)
    if strange:
        raise RejectedError("outside the alphabet")
    if not text:
        raise RejectedError("empty text")
    if len(text) > dataset.max_characters or utterance.seconds > dataset.max_seconds:
        raise RejectedError("too long")
    if not utterance.seconds and not seconds_of(utterance.audio):
        raise RejectedError(fault_of(utterance.audio))
    if utterance.seconds < dataset.min_seconds:
        raise RejectedError("too short")
    samples = read_samples(utterance, dataset.sample_rate)
    features = filters(at_speed(in_unit_range(samples), speed))
    if not len(features):
        raise RejectedError("too short")
    stored = features.astype(FRAME_DTYPE)
    if not np.isfinite(stored).all():
        raise RejectedError("features that are not finite")
    return KeptUtterance(text, stored, loudness(samples))


@dataclass
class Moments:
    """Moments of the frames added so far.

    Attributes:
        frames: Number of frames.
        sums: Sum of each feature, (FEATURES,).
        squares: Sum of squares of each feature, (FEATURES,).
    """

    frames: int = 0
    sums: np.ndarray = field(default_factory=lambda: np.zeros(FEATURES))
    squares: np.ndarray = field(default_factory=lambda: np.zeros(FEATURES))

    def add(self, frames: np.ndarray) -> None:
        """Add frames (T, FEATURES)."""
        exact = frames.astype(np.float64)
        self.frames += len(frames)
        self.sums += exact.sum(axis=0)
        self.squares += (exact**2).sum(axis=0)

    def statistics(self) -> Statistics:
        """Return mean and standard deviation of each feature."""
        mean = self.sums / self.frames
        deviation = np.sqrt(np.maximum(self.squares / self.frames - mean**2, 1e-8))
        return Statistics(mean=mean.tolist(), deviation=deviation.tolist())


def normalise_speakers(stem: Path, speakers: Sequence[str], wanted: Statistics) -> None:
    """Give the frames of `speakers`, one for each utterance, the `wanted` statistics, in the store `stem`."""
    store = FrameStore(stem, FEATURES)
    found: dict[str, Moments] = defaultdict(Moments)
    for number, speaker in enumerate(speakers):
        found[speaker].add(store[number])
    own = {speaker: moments.statistics() for speaker, moments in found.items()}
    with write_frames(stem) as output:
        for number, speaker in enumerate(speakers):
            output.append(normalised(store[number], own[speaker], wanted))


def normalised(frames: np.ndarray, own: Statistics, wanted: Statistics) -> np.ndarray:
    """Normalise `frames` (T, FEATURES) from a speaker's `own` statistics to the `wanted` ones."""
    deviation = np.maximum(own.deviation, LEAST_DEVIATION * np.array(wanted.deviation))
    found = (frames - np.array(own.mean)) / deviation * wanted.deviation + wanted.mean
    return found.astype(frames.dtype)


def coloured_noises(sample_rate: int, seed: int) -> Iterator[np.ndarray]:
    """Yield samples (n,) float32 of each colour, steady and pulsing, at a `sample_rate`, from a `seed`."""
    rng = np.random.default_rng(seed)
    count = NOISE_SECONDS * sample_rate
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
    """Return samples (n,) of several `voices` (n,) at a `sample_rate` at once, each repeated to fill the time."""
    count = NOISE_SECONDS * sample_rate
    return scaled(reduce(np.add, (np.resize(scaled(voice), count) for voice in voices)))


def scaled(samples: np.ndarray) -> np.ndarray:
    """Scale samples to a root mean square of 0.1."""
    return (0.1 * samples / max(float(np.sqrt(np.mean(samples**2))), 1e-9)).astype(np.float32)


def write_noises(dataset: SpokenDataset, manifest: Path, corpus: Path) -> None:
    """Write features of background noises of a `dataset` to a `corpus`; the first readable of `manifest` babble."""
    filters = MelFilters(dataset.sample_rate, dataset.high_hz)
    readable = voices(manifest, dataset.sample_rate)
    with write_frames(corpus / "encoded" / NOISE_STEM) as store:
        for noise in coloured_noises(dataset.sample_rate, NOISE_SEED):
            store.append(filters(noise))
        for _ in range(BABBLES):
            if some := list(islice(readable, VOICES)):
                store.append(filters(babble(some, dataset.sample_rate)))


def voices(manifest: Path, sample_rate: int) -> Iterator[np.ndarray]:
    """Yield the samples (n,) float32, n > 0, of readable utterances of a `manifest` at a `sample_rate`."""
    for utterance in read_manifest(manifest):
        with contextlib.suppress(RejectedError):
            if len(samples := read_audio(utterance, sample_rate)):
                yield samples

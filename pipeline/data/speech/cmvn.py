"""Cepstral mean and variance normalisation by the speaker, here of log-mel features: what a voice, a microphone and a
room add to every frame, and how far they let speech stand out, is made alike for all speakers.

A speaker gets the mean and deviation of the whole training set, not zero and one: the features stay those of a power
spectrum, to which noise can be added. Who speaks has to be known, but not what is said.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipeline.core.records.corpus import Statistics
from pipeline.data.store.frame_store import FEATURES, FrameStore, write_frames

LEAST_DEVIATION = 0.3
"""Of that in training: bands that a speed above one leaves empty stand still, and are not blown up."""


@dataclass
class Moments:
    """Of the frames added so far. sums, squares: (FEATURES,)."""

    frames: int = 0
    sums: np.ndarray = field(default_factory=lambda: np.zeros(FEATURES))
    squares: np.ndarray = field(default_factory=lambda: np.zeros(FEATURES))

    def add(self, frames: np.ndarray) -> None:
        exact = frames.astype(np.float64)
        self.frames += len(frames)
        self.sums += exact.sum(axis=0)
        self.squares += (exact**2).sum(axis=0)

    def statistics(self) -> Statistics:
        mean = self.sums / self.frames
        deviation = np.sqrt(np.maximum(self.squares / self.frames - mean**2, 1e-8))
        return Statistics(mean=mean.tolist(), deviation=deviation.tolist())


def rewrite_alike(stem: Path, speakers: Sequence[str], wanted: Statistics) -> None:
    """Give the frames of each of `speakers`, one an utterance of the store `stem`, the `wanted` mean and deviation."""
    store = FrameStore(stem, FEATURES)
    found: dict[str, Moments] = defaultdict(Moments)
    for number, speaker in enumerate(speakers):
        found[speaker].add(store[number])
    own = {speaker: moments.statistics() for speaker, moments in found.items()}
    with write_frames(stem) as alike:
        for number, speaker in enumerate(speakers):
            alike.append(normalised(store[number], own[speaker], wanted))


def normalised(frames: np.ndarray, own: Statistics, wanted: Statistics) -> np.ndarray:
    """(T, FEATURES), whose speaker's statistics are `own`, float16"""
    deviation = np.maximum(own.deviation, LEAST_DEVIATION * np.array(wanted.deviation))
    alike = (frames - np.array(own.mean)) / deviation * wanted.deviation + wanted.mean
    return alike.astype(frames.dtype)

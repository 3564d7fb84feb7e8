"""Background noise added to log-mel frames while a batch is put together.

The power of two signals that have nothing to do with each other adds up, in every mel band: log(exp s + exp n). So one
stored copy of the features serves every epoch, and which noise an utterance gets is a pure function of (seed, step,
utterance). Against adding waveforms, what is lost is the cross term of the two spectra, which is zero on average.
"""

from pathlib import Path

import numpy as np

from pipeline.config import TrainingConfig
from pipeline.data.store.frame_store import FrameStore

NOISE_STEM = "noise"
"""The store of noises in the folder of an encoded speech corpus."""


class NoiseMixer:
    """Adds stored noises, (frames, features) log-mel each, to utterances of the same corpus.

    Cold Fusion, section 4.3: with probability 0.4, at a signal-to-noise ratio uniform in 0-15 dB.
    """

    def __init__(self, corpus_folder: Path, features: int, settings: TrainingConfig, seed: int):
        self.noises = FrameStore(corpus_folder / NOISE_STEM, features)
        self.settings, self.seed = settings, seed

    def mixed(self, frames: np.ndarray, step: int, utterance: int) -> np.ndarray:
        """`frames` (T, features) of `utterance` in update `step`, float32; with noise as often as asked for."""
        key = np.array([self.seed, step], dtype=np.uint64)
        rng = np.random.Generator(np.random.Philox(key=key, counter=[0, 2, utterance, 0]))
        if rng.random() >= self.settings.noise_probability:
            return frames.astype(np.float32)
        noise = self.noises[int(rng.integers(len(self.noises)))]
        begin = int(rng.integers(len(noise)))
        snr_db = rng.uniform(*self.settings.noise_snr_db)
        return with_noise(frames, noise[(begin + np.arange(len(frames))) % len(noise)], snr_db)


def with_noise(frames: np.ndarray, noise: np.ndarray, snr_db: float) -> np.ndarray:
    """Log-mel of speech and noise together, (T, features) float32; the ratio of powers is that over all frames."""
    speech, noise = np.exp(frames.astype(np.float32)), np.exp(noise.astype(np.float32))
    gain = speech.sum() / (noise.sum() * 10 ** (snr_db / 10))
    return np.log(speech + np.float32(gain) * noise)

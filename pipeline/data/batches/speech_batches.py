"""Batches of utterances, counted in utterances, each a pure function of (seed, step): noise and order included."""

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from pipeline.config import TrainingConfig
from pipeline.core.errors import UserError
from pipeline.core.layout import CORPUS_FILE
from pipeline.core.records.corpus import SpeechCorpus
from pipeline.core.symbols import PAD
from pipeline.data.batches.base import Batch, EncodedSplit, enlarged
from pipeline.data.batches.fixed_size_batches import FixedSizeBatches, chosen
from pipeline.data.store.sequence_store import NOISE_STEM, FrameStore
from pipeline.models.settings import ModelSettings

log = logging.getLogger(__name__)

FRAMES_PER_CHARACTER = 3
"""Nobody says more than 33 characters per second."""


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


@dataclass(frozen=True)
class SpeechBatch(Batch):
    """B utterances: frames (B, S, features) float32, normalised, zero beyond frame_counts (B,) int64; transcripts
    tgt_in (B, T) = BOS + y and tgt_out (B, T) = y + EOS, padded with PAD."""

    frames: Tensor
    frame_counts: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    known: ClassVar[tuple[str, ...]] = (*Batch.known, "counts_on_host")

    @cached_property
    def counts_on_host(self) -> tuple[list[int], list[int]]:
        """Frames and characters, EOS not among them, of each utterance."""
        return self.frame_counts.tolist(), (self.tgt_in[:, 1:] != PAD).sum(1).tolist()

    @property
    def src_mask(self) -> Tensor:
        """(B, S) bool, True at real frames."""
        positions = torch.arange(self.frames.shape[1], device=self.frames.device)
        return positions < self.frame_counts[:, None]

    @property
    def expected_length(self) -> Tensor:
        """(B,): characters that a transcript may have before it counts as long."""
        return self.frame_counts // FRAMES_PER_CHARACTER

    @property
    def src_shape(self) -> tuple[int, int]:
        """Utterances and frames of the longest."""
        return self.frames.shape[0], self.frames.shape[1]

    def _fitted(self, rows: int, source: int, target: int) -> "SpeechBatch":
        """An utterance that is added has no frame."""
        frames = enlarged(self.frames, rows, source, self.frames.shape[2], value=0)
        counts = enlarged(self.frame_counts, rows, value=0)
        return SpeechBatch(frames, counts, enlarged(self.tgt_in, rows, target), enlarged(self.tgt_out, rows, target))


class SpeechSplit(EncodedSplit):
    """Features and transcripts of one split of an encoded speech corpus.

    Args:
        normalised_as: folder of the encoded corpus whose training statistics (mean and deviation of each feature)
            normalise the frames: that of the model's training. None = this corpus; likewise with speaker_cmvn.
    """

    def __init__(self, corpus_folder: Path, split: str, normalised_as: Path | None = None):
        super().__init__(corpus_folder, split)
        corpus = SpeechCorpus.read(self.folder / CORPUS_FILE)
        heard = SpeechCorpus.read(Path(normalised_as or self.folder) / CORPUS_FILE)
        if heard.speaker_cmvn != corpus.speaker_cmvn:
            raise UserError(
                f"{self.name}: speaker_cmvn of {corpus.dataset} is {corpus.speaker_cmvn}, but {heard.speaker_cmvn} of "
                f"{heard.dataset}, on which the model learnt to hear; make them the same in workflow/datasets"
            )
        normal = (corpus if corpus.speaker_cmvn else heard).statistics  # all its speakers have its own
        self.mean, self.deviation = (np.array(one, np.float32) for one in (normal.mean, normal.deviation))
        self.src = FrameStore(self.folder / split, corpus.features)
        if len(self.src) != len(self.tgt):
            raise UserError(
                f"{self.name}: {len(self.src)} utterances but {len(self.tgt)} transcripts; run `features` again"
            )
        self.src_lengths = self.src.lengths()

    def unwritable(self, model: ModelSettings) -> np.ndarray:
        """(N,) bool, True where the transcript has more characters than a model's output frames can hold."""
        room = model.output_frames(self.src_lengths)
        if room is None:
            return np.zeros(len(self.src), bool)
        return self.tgt.lengths() + self.tgt.repeats() > room

    def batch(self, indices: np.ndarray, noise: NoiseMixer | None = None, step: int = 0) -> SpeechBatch:
        """The utterances of `indices`, with noise as update `step` has it, or without."""
        counts = self.src_lengths[indices].astype(np.int64)
        frames = np.zeros((len(indices), int(counts.max()), len(self.mean)), np.float32)
        for row, index in enumerate(indices.tolist()):
            plain = self.src[index]
            mixed = noise.mixed(plain, step, index) if noise else plain.astype(np.float32)
            frames[row, : len(mixed)] = (mixed - self.mean) / self.deviation
        return SpeechBatch(torch.from_numpy(frames), torch.from_numpy(counts), *self.targets(indices))


def utterances_of(
    pairs: SpeechSplit, training: TrainingConfig, model: ModelSettings | None, seed: int
) -> tuple[np.ndarray, int]:
    """Numbers of the utterances of a split that are trained on, and how many were left out.

    model: those whose transcript it can't write, being too short for it, are left out, too; None = none are.

    Raises:
        UserError: none is left.
    """
    fits = (pairs.src_lengths <= training.max_frames) & (pairs.tgt_lengths <= training.max_length + 1)
    if model and (unwritable := pairs.unwritable(model) & fits).any():
        log.warning(
            "%s: %d utterances left out, as their transcripts have more characters than %s has output frames",
            *(pairs.name, unwritable.sum(), model.architecture),
        )
        fits &= ~unwritable
    most = f"{training.max_frames} frames and {training.max_length} characters"
    fault = f"{pairs.name}: no utterance of at most {most}; raise `max_frames` or `max_length`"
    return chosen(fits, training.train_share, seed, fault)


class SpeechBatches(FixedSizeBatches[SpeechSplit, SpeechBatch]):
    """The updates of a training run on utterances, with noise as often as its settings say.

    Raises:
        UserError: nothing is left to train on, or a single utterance exceeds `micro_batch_frames`.
    """

    def __init__(self, pairs: SpeechSplit, training: TrainingConfig, seed: int, model: ModelSettings | None = None):
        kept, self.left_out = utterances_of(pairs, training, model, seed)
        longest = pairs.src_lengths[kept].max()
        found = f"an utterance has {longest} frames"
        pairs.check_budget(found, longest, "micro_batch_frames", training.micro_batch_frames, "max_frames")
        super().__init__(pairs, kept, training, training.micro_batch_frames, seed)
        noisy = training.noise_probability > 0
        self.noise = NoiseMixer(pairs.folder, len(pairs.mean), training, seed) if noisy else None

    def batch(self, indices: np.ndarray, step: int | None) -> SpeechBatch:
        """The utterances with the noise of update `step`; None = without."""
        return self.pairs.batch(indices) if step is None else self.pairs.batch(indices, self.noise, step)

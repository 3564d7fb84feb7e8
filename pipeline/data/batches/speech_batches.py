"""Batches of utterances with background noise, a pure function of (seed, step).

Noise is added to log-mel frames when a batch is built. The power of two independent signals adds up in every mel band:
log(exp s + exp n). So one stored copy of the features serves every epoch, and the noise of an utterance is a function
of (seed, step, utterance). Compared with adding waveforms, the cross term of the spectra is lost; its mean is zero.
"""

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from pipeline.config import TrainingConfig
from pipeline.core.errors import UserError, count_of
from pipeline.core.layout import CORPUS_FILE
from pipeline.core.records.corpus import SpeechCorpus
from pipeline.data.batches.base import Batch, EncodedSplit, pad_to
from pipeline.data.batches.fixed_size_batches import FixedSizeBatches, select_share
from pipeline.data.encoded_files import NOISE_STEM
from pipeline.data.sequence_store import FrameStore
from pipeline.models.settings import PAD, ModelSettings

log = logging.getLogger(__name__)

FRAMES_PER_CHARACTER = 3
"""Minimum number of frames per character; speech has at most 33 characters per second."""


class NoiseMixer:
    """Stored noises, (frames, features) log-mel each, that are added to utterances of the same corpus.

    Cold Fusion, section 4.3: with probability 0.4, at a signal-to-noise ratio uniform in 0–15 dB.
    """

    def __init__(self, corpus_folder: Path, features: int, settings: TrainingConfig, seed: int):
        self.noises = FrameStore(corpus_folder / NOISE_STEM, features)
        self.settings, self.seed = settings, seed

    def mixed(self, frames: np.ndarray, step: int, utterance: int) -> np.ndarray:
        """Return `frames` (T, features) of an `utterance`, float32, with the noise of a training `step`, if any."""
        key = np.array([self.seed, step], dtype=np.uint64)
        rng = np.random.Generator(np.random.Philox(key=key, counter=[0, 2, utterance, 0]))
        if rng.random() >= self.settings.noise_probability:
            return frames.astype(np.float32)
        noise = self.noises[int(rng.integers(len(self.noises)))]
        begin = int(rng.integers(len(noise)))
        snr_db = rng.uniform(*self.settings.noise_snr_db)
        return with_noise(frames, noise[(begin + np.arange(len(frames))) % len(noise)], snr_db)


def with_noise(frames: np.ndarray, noise: np.ndarray, snr_db: float) -> np.ndarray:
    """Add `noise` to speech `frames`, log-mel (T, features); their powers over all frames differ by `snr_db`."""
    speech, noise = np.exp(frames.astype(np.float32)), np.exp(noise.astype(np.float32))
    gain = speech.sum() / (noise.sum() * 10 ** (snr_db / 10))
    return np.log(speech + np.float32(gain) * noise)


@dataclass(frozen=True)
class SpeechBatch(Batch):
    """B utterances with their transcripts.

    Attributes:
        frames: Normalised features, (B, S, features) float32, zero beyond `frame_counts`.
        frame_counts: Number of frames of each utterance, (B,) int64.
        tgt_in: BOS + transcript, padded with PAD, (B, T).
        tgt_out: Transcript + EOS, padded with PAD, (B, T).
    """

    frames: Tensor
    frame_counts: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    host_values: ClassVar[tuple[str, ...]] = (*Batch.host_values, "counts_on_host")

    @cached_property
    def counts_on_host(self) -> tuple[list[int], list[int]]:
        """Number of frames and of characters (EOS excluded) of each utterance."""
        return self.frame_counts.tolist(), (self.tgt_in[:, 1:] != PAD).sum(1).tolist()

    @property
    def src_mask(self) -> Tensor:
        """Mask (B, S), True at real frames."""
        positions = torch.arange(self.frames.shape[1], device=self.frames.device)
        return positions < self.frame_counts[:, None]

    @property
    def expected_length(self) -> Tensor:
        """Number (B,) of characters after which a transcript counts as long."""
        return self.frame_counts // FRAMES_PER_CHARACTER

    @property
    def src_shape(self) -> tuple[int, int]:
        """Number of utterances, and of frames of the longest."""
        return self.frames.shape[0], self.frames.shape[1]

    def _fitted(self, rows: int, source: int, target: int) -> "SpeechBatch":
        """Pad with utterances that have no frame."""
        frames = pad_to(self.frames, rows, source, self.frames.shape[2], value=0)
        counts = pad_to(self.frame_counts, rows, value=0)
        return SpeechBatch(frames, counts, pad_to(self.tgt_in, rows, target), pad_to(self.tgt_out, rows, target))


class SpeechSplit(EncodedSplit):
    """Features and transcripts of one split of an encoded speech corpus.

    Args:
        corpus_folder: Folder of the encoded corpus.
        normalisation_corpus: Encoded corpus whose training mean and deviation normalise the frames, the one that the
            model was trained on. None = this corpus. A corpus with speaker_cmvn always uses its own.

    Raises:
        UserError: Features and transcripts differ in number, or the two corpora in speaker_cmvn.
    """

    def __init__(self, corpus_folder: Path, split: str, normalisation_corpus: Path | None = None):
        super().__init__(corpus_folder, split)
        corpus = SpeechCorpus.read(self.folder / CORPUS_FILE)
        heard = SpeechCorpus.read(Path(normalisation_corpus or self.folder) / CORPUS_FILE)
        if heard.speaker_cmvn != corpus.speaker_cmvn:
            raise UserError(
                f"{self.name}: speaker_cmvn of {corpus.dataset} is {corpus.speaker_cmvn}, but {heard.speaker_cmvn} for "
                f"{heard.dataset}, on which the model was trained; make them the same in workflow/datasets"
            )
        normal = (corpus if corpus.speaker_cmvn else heard).statistics  # all its speakers have its own
        self.mean, self.deviation = (np.array(values, np.float32) for values in (normal.mean, normal.deviation))
        self.src = FrameStore(self.folder / split, corpus.features)
        if len(self.src) != len(self.tgt):
            raise UserError(
                f"{self.name}: {len(self.src)} utterances but {len(self.tgt)} transcripts; run `features` again"
            )
        self.src_lengths = self.src.lengths()

    def exceeds_output(self, model: ModelSettings) -> np.ndarray:
        """Return where the transcript has more characters than the model has output frames, (N,) bool."""
        room = model.output_frames(self.src_lengths)
        if room is None:
            return np.zeros(len(self.src), bool)
        return self.tgt.lengths() + self.tgt.repeats() > room

    def batch(self, indices: np.ndarray, noise: NoiseMixer | None = None, step: int = 0) -> SpeechBatch:
        """Return a batch of utterances.

        Args:
            indices: Utterances, (B,).
            noise: Noise to add; None adds none.
            step: Global training step, which decides the noise of each utterance.
        """
        counts = self.src_lengths[indices].astype(np.int64)
        frames = np.zeros((len(indices), int(counts.max()), len(self.mean)), np.float32)
        for row, index in enumerate(indices.tolist()):
            plain = self.src[index]
            mixed = noise.mixed(plain, step, index) if noise else plain.astype(np.float32)
            frames[row, : len(mixed)] = (mixed - self.mean) / self.deviation
        return SpeechBatch(torch.from_numpy(frames), torch.from_numpy(counts), *self.targets(indices))


def select_utterances(
    pairs: SpeechSplit, training: TrainingConfig, model: ModelSettings | None, seed: int
) -> tuple[np.ndarray, int]:
    """Select the utterances of a split to train on.

    Args:
        pairs: Split to select from.
        training: Limits on length, and the share to train on.
        model: Leave out utterances whose transcript is too long for its output frames; None keeps them.
        seed: Seed of the share.

    Returns:
        Indices of the utterances, and the number left out.

    Raises:
        UserError: No utterance is left.
    """
    fits = (pairs.src_lengths <= training.max_frames) & (pairs.tgt_lengths <= training.max_length + 1)
    if model and (too_long := pairs.exceeds_output(model) & fits).any():
        log.warning(
            "%s: left out %s whose transcript has more characters than %s has output frames",
            *(pairs.name, count_of(int(too_long.sum()), "utterance"), model.architecture),
        )
        fits &= ~too_long
    most = f"{training.max_frames} frames and {training.max_length} characters"
    fault = f"{pairs.name}: no utterance has at most {most}; raise `max_frames` or `max_length`"
    return select_share(fits, training.train_share, seed, fault)


class SpeechBatches(FixedSizeBatches[SpeechSplit, SpeechBatch]):
    """Training batches of utterances with noise.

    Raises:
        UserError: No utterance is left, or a single utterance exceeds `micro_batch_frames`.
    """

    def __init__(self, pairs: SpeechSplit, training: TrainingConfig, seed: int, model: ModelSettings | None = None):
        kept, self.left_out = select_utterances(pairs, training, model, seed)
        longest = pairs.src_lengths[kept].max()
        found = f"an utterance has {longest} frames"
        pairs.check_budget(found, longest, "micro_batch_frames", training.micro_batch_frames, "max_frames")
        super().__init__(pairs, kept, training, training.micro_batch_frames, seed)
        noisy = training.noise_probability > 0
        self.noise = NoiseMixer(pairs.folder, len(pairs.mean), training, seed) if noisy else None

    def batch(self, indices: np.ndarray, step: int | None) -> SpeechBatch:
        return self.pairs.batch(indices) if step is None else self.pairs.batch(indices, self.noise, step)

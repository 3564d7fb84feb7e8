"""What somebody gives a model, in memory, as the splits that the searches of the workflow decode."""

from collections.abc import Sequence

import numpy as np

from pipeline.core.records.corpus import Statistics
from pipeline.data.batches.batches import ParallelSplit
from pipeline.data.batches.speech_batches import SpeechSplit
from pipeline.data.store.frame_store import FrameStore
from pipeline.data.store.token_store import TokenStore


class GivenTokens(TokenStore):
    """Ids of some sentences."""

    def __init__(self, sentences: Sequence[Sequence[int]]):
        self.offsets = ends(sentences)
        self.values: np.ndarray = np.array([token for sentence in sentences for token in sentence], dtype=np.int64)


class GivenFrames(FrameStore):
    """Features of some utterances, each (T, features) float16."""

    def __init__(self, utterances: Sequence[np.ndarray]):
        self.offsets = ends(utterances)
        self.values: np.ndarray = np.concatenate(utterances)


def ends(parts: Sequence[Sequence[int]] | Sequence[np.ndarray]) -> np.ndarray:
    """(N + 1,) int64: where each of N parts in a row begins, and the end."""
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
        self.mean, self.deviation = (np.array(one, np.float32) for one in (statistics.mean, statistics.deviation))
        self.src_lengths, self.tgt_lengths = self.src.lengths(), self.tgt.lengths() + 1

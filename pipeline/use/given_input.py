"""What somebody gives a model, in memory, as the splits that the searches of the workflow decode."""

from collections.abc import Sequence

import numpy as np

from pipeline.data.batches import EvaluationBatches, ParallelSplit
from pipeline.data.frame_store import STORED, FrameStore
from pipeline.data.speech_batches import SpeechEvaluationBatches, SpeechSplit
from pipeline.data.token_store import TokenStore
from pipeline.records.corpus import Statistics


class GivenTokens(TokenStore):
    """Ids of some sentences."""

    def __init__(self, sentences: Sequence[Sequence[int]]):
        self.offsets = ends(sentences)
        self.tokens = np.array([token for sentence in sentences for token in sentence], dtype=np.int64)
        self.dtype = self.tokens.dtype


class GivenFrames(FrameStore):
    """Features of some utterances, each (T, features) float16."""

    def __init__(self, utterances: Sequence[np.ndarray]):
        self.offsets = ends(utterances)
        self.frames = np.concatenate(utterances).astype(STORED)


def ends(parts: Sequence[Sequence[int]] | Sequence[np.ndarray]) -> np.ndarray:
    """(N + 1,) int64: where each of N parts in a row begins, and the end."""
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


class GivenText(EvaluationBatches):
    """Sentences without a translation."""

    def __init__(self, name: str, sentences: Sequence[Sequence[int]], batch_tokens: int):
        pairs = ParallelSplit.__new__(ParallelSplit)
        pairs.name, pairs.src, pairs.tgt = name, GivenTokens(sentences), GivenTokens([()] * len(sentences))
        pairs.src_lengths, pairs.tgt_lengths = pairs.src.lengths() + 1, pairs.tgt.lengths() + 1
        self.pairs, self.batch_tokens = pairs, batch_tokens


class GivenSpeech(SpeechEvaluationBatches):
    """Utterances without a transcript, normalised by the statistics of the model's training."""

    def __init__(self, name: str, utterances: Sequence[np.ndarray], statistics: Statistics, batch_frames: int):
        pairs = SpeechSplit.__new__(SpeechSplit)
        pairs.name, pairs.src, pairs.tgt = name, GivenFrames(utterances), GivenTokens([()] * len(utterances))
        pairs.mean, pairs.deviation = (np.array(one, np.float32) for one in (statistics.mean, statistics.deviation))
        pairs.src_lengths, pairs.tgt_lengths = pairs.src.lengths(), pairs.tgt.lengths() + 1
        self.pairs, self.batch_frames = pairs, batch_frames

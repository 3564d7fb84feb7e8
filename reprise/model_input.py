"""Text and sound of a user, prepared in memory like the corpus of a model."""

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from pipeline.core.records.corpus import Statistics
from pipeline.core.schema import Closed
from pipeline.data.batches.parallel_batches import ParallelSplit
from pipeline.data.batches.speech_batches import SpeechSplit
from pipeline.data.dataset import AnyDataset, SampleRate, Segmenter, TokeniserName
from pipeline.data.sequence_store import FrameStore, TokenStore
from pipeline.data.text.cleaning import BadPairError, decode, tokenise_line
from pipeline.data.text.tokenisation import Tokenisation

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

        Args:
            line: The line.

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

    def text(self, tokens: Sequence[str]) -> list[str]:
        """Detokenise lines of the target side."""
        return [self.tokenisation.text(line, self.tgt) for line in tokens]


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

"""`encoded/corpus.json`: what training, planning and evaluation know of a corpus without reading its ids."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, FiniteFloat, Tag

from pipeline.core.layout import CORPUS_FILE
from pipeline.core.records.record import Record, read_as
from pipeline.core.schema import Closed, Count

Kind = Literal["parallel", "speech", "text"]


class TextSplit(Closed):
    """Sentences without a source."""

    pairs: int = Field(description="Sentences")
    tgt_tokens: int = Field(description="Symbols, EOS not counted")


class SpeechSplit(TextSplit):
    """Utterances and their transcripts."""

    src_tokens: int = Field(description="Frames")
    seconds: float


class ParallelSplit(TextSplit):
    """Sentence pairs.

    Attributes:
        src_unknown: Source subwords that the vocabulary lacks.
        src_changed: Source lines that do not decode to themselves.
        tgt_unknown: Target subwords that the vocabulary lacks.
        tgt_changed: Target lines that do not decode to themselves.
    """

    src_tokens: int = Field(description="Subwords, EOS not counted")
    src_unknown: int
    src_changed: int
    tgt_unknown: int
    tgt_changed: int


class EncodedCorpus(Record):
    """Fields of all kinds of corpora."""

    remedy: ClassVar[str] = "encode the corpus again"

    dataset: str
    tgt: str = Field(description="Language or other name of the target side")
    vocab_size: Count = Field(description="Size of the source vocabulary, or of the only one")
    vocab_digest: str
    digest: str = Field(description="SHA-256 of the encoded files")

    @property
    def vocab_sizes(self) -> tuple[int, int]:
        """Return the numbers of source and target entries."""
        return self.vocab_size, self.vocab_size

    @property
    def target_digest(self) -> str:
        """Return the digest of the target symbols."""
        return self.vocab_digest


class ParallelCorpus(EncodedCorpus):
    """Sentence pairs."""

    kind: Literal["parallel"] = "parallel"
    src: str
    tokeniser: Literal["moses", "none"] = Field(default="moses", description="Tokeniser of the text")
    tgt_vocab_size: Count
    tgt_vocab_digest: str
    splits: dict[str, ParallelSplit]

    @property
    def vocab_sizes(self) -> tuple[int, int]:
        """Return the numbers of source and target entries."""
        return self.vocab_size, self.tgt_vocab_size

    @property
    def target_digest(self) -> str:
        """Return the digest of the target symbols."""
        return self.tgt_vocab_digest


class Statistics(Closed):
    """Mean and deviation of each feature over the frames of the training split."""

    mean: list[FiniteFloat]
    deviation: list[FiniteFloat]


class SpeechCorpus(EncodedCorpus):
    """Features and transcripts."""

    kind: Literal["speech"] = "speech"
    src: Literal["speech"] = "speech"
    features: Count = Field(description="Features of a frame")
    statistics: Statistics
    speaker_cmvn: bool = Field(default=False, description="The statistics hold for the features of every speaker")
    splits: dict[str, SpeechSplit]


class TextCorpus(EncodedCorpus):
    """Sentences without a source, for language models."""

    kind: Literal["text"] = "text"
    splits: dict[str, TextSplit]


def kind_of(corpus: Any) -> str:
    """Return the kind of a corpus; without one it is parallel."""
    return corpus.get("kind", "parallel") if isinstance(corpus, dict) else getattr(corpus, "kind", "parallel")


AnyCorpus = Annotated[
    Annotated[ParallelCorpus, Tag("parallel")]
    | Annotated[SpeechCorpus, Tag("speech")]
    | Annotated[TextCorpus, Tag("text")],
    Discriminator(kind_of),
]


def read_corpus(encoded: Path) -> ParallelCorpus | SpeechCorpus | TextCorpus:
    """Read the record of an encoded corpus.

    Args:
        encoded: The folder `encoded/` of the corpus.

    Returns:
        The record.

    Raises:
        UserError: The record is missing, faulty or of an unknown kind.
    """
    return read_as(AnyCorpus, Path(encoded) / CORPUS_FILE, EncodedCorpus.remedy)

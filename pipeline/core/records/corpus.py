"""Records of a corpus: `encoded/corpus.json`, and the reports of the stages that make it.

Training, planning and evaluation read `corpus.json` instead of the ids. The reports count lines read, kept, rejected
and repaired, and describe learnt vocabularies.
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, FiniteFloat, Tag

from pipeline.core.layout import CORPUS_FILE
from pipeline.core.records.record import Record, read_as
from pipeline.core.schema import Closed, Count

Kind = Literal["parallel", "speech", "text"]


class TextSizes(Closed):
    """Sentences without a source."""

    pairs: int = Field(description="Sentences")
    tgt_tokens: int = Field(description="Symbols, EOS not counted")


class SpeechSizes(TextSizes):
    """Utterances and their transcripts."""

    src_tokens: int = Field(description="Frames")
    seconds: float


class ParallelSizes(TextSizes):
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

    @property
    def vocabulary(self) -> str:
        """Return the digests of all its vocabularies, that of the source first."""
        return " ".join(dict.fromkeys((self.vocab_digest, self.target_digest)))


class ParallelCorpus(EncodedCorpus):
    """Sentence pairs."""

    kind: Literal["parallel"] = "parallel"
    src: str
    tokeniser: Literal["moses", "none"] = Field(default="moses", description="Tokeniser of the text")
    tgt_vocab_size: Count
    tgt_vocab_digest: str
    splits: dict[str, ParallelSizes]

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
    speeds: Count = Field(default=1, description="Copies in a row of each training utterance, one per speed")
    splits: dict[str, SpeechSizes]


class TextCorpus(EncodedCorpus):
    """Sentences without a source, for language models."""

    kind: Literal["text"] = "text"
    splits: dict[str, TextSizes]


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
    """Return the record of an encoded corpus.

    Raises:
        UserError: The record is missing, faulty or of an unknown kind.
    """
    return read_as(AnyCorpus, Path(encoded) / CORPUS_FILE, EncodedCorpus.remedy)


class RawFiles(Record):
    """`raw.done`: the files of a corpus's raw data."""

    files: list[str] = Field(description="Files and folders of files, relative to the folder of the corpus")


class SplitReport(Closed):
    """Counts of a split of any kind."""

    read: int
    rejected: dict[str, int] = Field(description="Number of rejected pairs, by reason")


class PairsReport(SplitReport):
    """Counts of a split of sentence pairs."""

    kept: int
    rejected_lines: dict[str, list[int]] = Field(description="First rejected lines of each reason, counted from 1")
    repaired: dict[str, int]
    src_words: int
    tgt_words: int
    ceiling: float | None = Field(
        default=None,
        description="sacreBLEU of a perfect translation: of the references, tokenised and detokenised",
    )
    changed: int = Field(default=0, description="References that differ after tokenising and detokenising")


class PreparedPairs(Record):
    """`prepared/report.json` of sentence pairs."""

    dataset: str
    tokeniser: str
    unit: str = Field(default="tokens", description="Unit of src_words, tgt_words and the limits of `cleaning`")
    splits: dict[str, PairsReport]
    shared: dict[str, int] = Field(default={}, description="Source sentences in two splits, by their names")
    shared_targets: dict[str, int] = Field(default={}, description="Target sentences in two splits, by their names")


class TreesReport(SplitReport):
    """Counts of a split of trees."""

    kept: int
    repaired: dict[str, int]
    removed: dict[str, int]
    src_words: int
    tgt_words: int = Field(description="Symbols of the linearised trees")
    words_percentiles: dict[str, int] = Field(description="Words of a sentence")
    symbols_percentiles: dict[str, int] = Field(description="Symbols of a linearised tree")
    labels: dict[str, int]
    tags: dict[str, int]


class PreparedTrees(Record):
    """`prepared/report.json` of a treebank."""

    dataset: str
    splits: dict[str, TreesReport]
    shared: dict[str, int] = Field(default={}, description="Sentences in two splits, by their names")


class SentencesReport(SplitReport):
    """Counts of a split of sentences without a source."""

    kept: int
    characters: int
    words: int
    examples: list[str] = Field(description="First rejected ones")


class PreparedText(Record):
    """`prepared/report.json` of text without a source."""

    dataset: str
    splits: dict[str, SentencesReport]


class UtterancesReport(SentencesReport):
    """Counts of a split of utterances."""

    utterances: int
    frames: int
    seconds: float


class PreparedSpeech(Record):
    """`prepared/report.json` of speech."""

    dataset: str
    splits: dict[str, UtterancesReport]
    shared: int = Field(default=0, description="Utterances in several splits other than train")
    shared_examples: list[str] = Field(default=[], description="First of them, with their splits")
    shared_speakers: list[str] = Field(default=[], description="First speakers in several splits")


class SpokenSplit(SplitReport):
    """Counts of a split that was read aloud."""

    utterances: int
    examples: list[str] = Field(description="First rejected ones")


class SpokenReport(Record):
    """`spoken.json`: text that was read aloud."""

    dataset: str
    synthesiser: str
    splits: dict[str, SpokenSplit]


class Sampled(Closed):
    """The sentence pairs that a vocabulary was learnt from."""

    pairs: int
    of: int
    seed: int | None = None


class LearntVocabulary(Closed):
    """A learnt vocabulary."""

    kind: str
    vocab_size: int
    digest: str = Field(description="SHA-256 of the model file")
    sample: Sampled


class Vocabularies(LearntVocabulary, Record):
    """`subwords.json`: the vocabulary of the source side or of both, and that of the target side if it has its own."""

    tgt: LearntVocabulary | None = None
    sentencepiece: str = Field(description="Version of sentencepiece")


class VerifiedFile(Record):
    """A note that a fetched file had the right checksum; valid while size and time stay the same."""

    path: str
    bytes: int
    changed_ns: int


class VerifiedCorpus(Record):
    """A note that the files of an encoded corpus had this digest; valid while their sizes and times stay the same."""

    digest: str
    files: dict[str, tuple[int, int]] = Field(description="Size in bytes and modification time in ns")

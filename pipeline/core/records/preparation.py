"""Reports of the stages that make a corpus: lines read, kept, rejected and repaired, and learnt vocabularies."""

from pydantic import Field

from pipeline.core.records.record import Record
from pipeline.core.schema import Closed


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


class Spoken(Record):
    """`spoken.json`: text that was read aloud."""

    dataset: str
    synthesiser: str
    splits: dict[str, SpokenSplit]


class Sampled(Closed):
    """The sentence pairs that a vocabulary was learnt from."""

    pairs: int
    of: int
    seed: int | None = None


class Vocabulary(Closed):
    """A learnt vocabulary."""

    kind: str
    vocab_size: int
    digest: str = Field(description="SHA-256 of the model file")
    sample: Sampled


class Vocabularies(Vocabulary, Record):
    """`subwords.json`: the vocabulary of the source side or of both, and that of the target side if it has its own."""

    tgt: Vocabulary | None = None
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

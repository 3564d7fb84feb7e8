"""Records of speech, read aloud or recorded, and of text in its characters."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import NUMBER, Bytes, Closed, Count, Number, Positive, Seed
from pipeline.data.dataset import base

TextLayout = Literal["plain", "transcripts", "stm", "tedlium"]
Range = Annotated[tuple[Number, Number], Field(strict=False)]
SampleRate = Annotated[int, Field(ge=2000, le=1_000_000)]
Pitch = Annotated[int, Field(ge=1, le=99)]


class TextPart(Closed):
    """Lines of one file."""

    source: str = Field(description="A name in workflow/files, or under `sources`")
    member: str | None = Field(
        default=None, description="Pattern of paths in the archive, such as LM/*.gz; null = the file itself"
    )
    layout: TextLayout = Field(
        default="plain",
        description="plain: one sentence per line; transcripts: an id before each; "
        "stm: six fields before each; tedlium: separate clitics (it 's), and </s> at the end",
    )
    first: Count = Field(default=1, description="Number of the first line to take, from 1")
    every: Count = Field(default=1, description="Take every n-th line from the first one on")
    lines: Count | None = Field(default=None, description="Maximum number of lines to take; null = all")
    keywords: bool = Field(
        default=False, description="Replace each line by its distinct words in random order, as in queries"
    )


class FetchedText(Closed):
    """English text from public addresses."""

    kind: Literal["fetched"] = Field(description="Fetched from the sources")
    sources: base.Sources = Field(default={}, description="Files to fetch that workflow/files does not describe")
    splits: dict[base.SplitName, list[TextPart]] = Field(description="Lines of each split")
    in_turn: bool = Field(default=False, description="Interleave the parts line by line instead of concatenating them")

    @model_validator(mode="after")
    def splits_name_sources(self):
        """Check that the splits name exactly the sources."""
        base.check_places({part.source for parts in self.splits.values() for part in parts}, self.sources, "sources")
        return self


GrammarDomain = Literal["film", "search", "queries"]


class GrammarText(Closed):
    """Sentences of the embedded grammar, which needs no download.

    Texts of one seed and equal dev and test sizes share their dev and test sentences, and a shorter training text is a
    prefix of a longer one. So a language model of the larger text has seen no test sentence.
    """

    kind: Literal["grammar"] = Field(description="Written by the embedded grammar")
    domains: list[GrammarDomain] = Field(
        min_length=1,
        description="film: full sentences of film scripts; search: search queries; queries: alternates search queries "
        "and shuffled words of film sentences, so that it differs from film in language, not in vocabulary",
    )
    sizes: dict[base.SplitName, Count] = Field(description="Sentences of each domain and split, before cleaning")
    seed: Seed = Field(description="Seed of all random choices")


Text = Annotated[FetchedText | GrammarText, Field(discriminator="kind")]


class FromText(base.DatasetRecord):
    """Datasets that begin with text which the user does not provide."""

    text: Text = Field(description="Origin of the text")

    @model_validator(mode="after")
    def text_is_of_all_splits(self):
        """Check that the text covers all splits."""
        base.check_splits(self, self.text.splits if isinstance(self.text, FetchedText) else self.text.sizes)
        return self

    @property
    def sources(self) -> dict[str, base.Source]:
        """Files to fetch, by name."""
        return self.text.sources if isinstance(self.text, FetchedText) else {}


class SpeechSize(Closed):
    """Expected size of the corpus, for `plan`; an encoded corpus is counted instead."""

    utterances: list[Count] = Field(min_length=3, description="Utterances of train, dev and test")
    seconds: Positive = Field(description="Mean length of an utterance")
    characters: Positive = Field(description="Mean length of a transcript")
    raw_bytes: Bytes = Field(description="Bytes of audio and text before features")


class ExpectedUtterances(Closed):
    """Size and digest that a split must have, so that no score is computed on another set of that name."""

    utterances: Count = Field(description="Number of utterances kept")
    sha256: base.Sha256 | None = Field(default=None, description="SHA-256 of the kept transcripts, prepared/<split>.en")


class SpokenRecord(base.DatasetRecord):
    """Fields of all speech datasets: audio on the source side, English characters on the target side."""

    form: ClassVar = "speech"
    domain: str = Field(pattern=r"^[\w-]+$", description="Domain of the text")
    sample_rate: SampleRate = Field(description="Rate of all audio in Hz; other rates are rejected")
    high_hz: Number = Field(ge=1000, description="Upper edge of the mel filters, in Hz")
    min_seconds: Positive = Field(default=0.1, description="Shorter utterances are dropped and counted")
    max_seconds: Positive = Field(description="Longer utterances are dropped and counted")
    max_characters: Count = Field(description="Utterances with longer transcripts are dropped and counted")
    speeds: list[Annotated[float, Field(ge=0.25, le=4, strict=False), NUMBER]] = Field(
        default=[1.0], min_length=1, description="Speeds at which training utterances are added, by resampling"
    )
    speaker_cmvn: bool = Field(
        default=False,
        description="Normalise the features of each speaker and speed to the mean and deviation of the training set",
    )
    disjoint_speakers: bool = Field(default=False, description="Fail if a speaker is in two splits")
    expected: dict[base.SplitName, ExpectedUtterances] = Field(
        default={}, description="Sizes and digests that the prepared splits must have"
    )
    size: SpeechSize | None = Field(
        default=None, description="Expected size, for `plan`; null = `plan` needs the encoded corpus"
    )

    @property
    def languages(self) -> tuple[str, str]:
        """Names of both sides."""
        return "speech", "en"

    @model_validator(mode="after")
    def filters_end_below_half_the_rate(self):
        """Refuse mel filters that end above the Nyquist frequency."""
        if self.high_hz > self.sample_rate / 2:
            raise ValueError(f"high_hz {self.high_hz} is above half the sample_rate {self.sample_rate}")
        return self


class ReaderPool(Closed):
    """Voices that read aloud, drawn for each utterance by its number alone, so that domains differ only in text."""

    voices: list[str] = Field(min_length=1, description="eSpeak NG voice files with variant, such as gmw/en-US+f2")
    words_per_minute: tuple[Count, Count] = Field(strict=False, description="Slowest and fastest rate")
    pitch: tuple[Pitch, Pitch] = Field(strict=False, description="Lowest and highest base pitch, 1 to 99")
    seed: Seed = Field(description="Seed of the draws")

    @model_validator(mode="after")
    def ranges_rise(self):
        """Refuse a range that goes from high to low."""
        if self.words_per_minute[0] > self.words_per_minute[1] or self.pitch[0] > self.pitch[1]:
            raise ValueError("a range must go from low to high")
        return self


class DomainGap(Closed):
    """Required differences between this target domain and the source domain, measured by `check_data`."""

    source: str = Field(description="Dataset of the source domain")
    unknown_words: Number = Field(
        ge=0, le=1, description="Maximum share of test words that are unknown to the source's training set"
    )
    perplexity_ratio: Range = Field(
        description="Allowed ratio of the test text's perplexity under models of the source and of this domain"
    )
    characters_a_position: Positive = Field(
        description="Maximum number of characters per position of the encoder's output, on average, in both domains"
    )


class ReadAloudDataset(SpokenRecord, FromText):
    """Text read aloud by eSpeak NG."""

    collector: ClassVar = "collect-text"
    is_read_aloud: ClassVar = True
    kind: Literal["read-aloud"] = Field(description="Text read aloud by eSpeak NG")
    utterances: dict[base.SplitName, Count] = Field(
        description="Number of sentences to read of each split: the first that fit"
    )
    readers: ReaderPool = Field(description="Voices that read")
    gap: DomainGap | None = Field(default=None, description="Required differences to the source domain; null = none")
    sample_rate: Literal[22050] = Field(default=22050, description="Rate of eSpeak NG's voices, in Hz")


class RecordingPart(Closed):
    """Utterances from one archive."""

    source: str = Field(description="A name in workflow/files, or under `sources`: an archive of audio")
    members: str = Field(description="Pattern of paths to take, such as an4/train/*")
    table: str | None = Field(
        default=None, description="TSV file of layout `table`: a name in workflow/files, or under `sources`"
    )


class RecordedDataset(SpokenRecord):
    """Recordings from public archives."""

    collector: ClassVar = "collect-recordings"
    kind: Literal["recordings"] = Field(description="Recordings from public archives")
    layout: Literal["librispeech", "tedlium", "table"] = Field(
        description="Pairing of audio and transcripts: <chapter>.trans.txt beside the audio; <talk>.stm beside "
        "<talk>.sph; or a table of path, speaker and transcript"
    )
    sources: base.Sources = Field(default={}, description="Files to fetch that workflow/files does not describe")
    splits: dict[base.SplitName, list[RecordingPart]] = Field(description="Archives of each split")

    @model_validator(mode="after")
    def splits_name_sources(self):
        """Refuse splits that do not name exactly the sources, and tables of another layout."""
        base.check_splits(self, self.splits)
        parts = [part for split in self.splits.values() for part in split]
        base.check_places(
            {name for part in parts for name in (part.source, part.table) if name}, self.sources, "sources"
        )
        if any((part.table is None) == (self.layout == "table") for part in parts):
            raise ValueError("set `table` if, and only if, the layout is `table`")
        return self


class OwnFolder(base.DatasetRecord, base.LicensedPackages):
    """One folder of the user's own, named here, or in config.yaml as a licensed package."""

    suffix: ClassVar[str]
    """Suffix of the file of each split."""
    folder: str | None = Field(
        default=None, min_length=1, description="The folder; null = config.yaml names the folder of the only package"
    )

    @model_validator(mode="before")
    @classmethod
    def own_folder_is_a_package(cls, record: Any) -> Any:
        """Treat a folder named here as a package."""
        if isinstance(record, dict) and record.get("folder") and "packages" not in record:
            return record | {"packages": {str(record.get("name")): "a folder of one's own"}}
        return record

    @property
    def may_be_missing(self) -> bool:
        """True if config.yaml has to name the folder."""
        return self.folder is None

    @property
    def package(self) -> str:
        """Name of the only package."""
        return next(iter(self.packages))

    def package_members(self, package: str) -> list[str]:
        """Return the files of the package that must exist."""
        return [split + self.suffix for split in self.split_names]

    @model_validator(mode="after")
    def is_one_folder(self):
        """Refuse a record without exactly one package."""
        if len(self.packages) != 1:
            raise ValueError("needs exactly one package: the user's folder")
        return self


class ManifestDataset(SpokenRecord, OwnFolder):
    """A speech corpus of the user's own: a folder with <split>.tsv and the audio that it names."""

    suffix: ClassVar = ".tsv"
    kind: Literal["manifest"] = Field(description="Audio named by manifests, in a folder of the user's own")


class TextSize(Closed):
    """Expected size of the corpus, for `plan`; an encoded corpus is counted instead."""

    sentences: list[Count] = Field(min_length=3, description="Sentences of train, dev and test")
    characters: Positive = Field(description="Mean length of a sentence")
    raw_bytes: Bytes = Field(description="Bytes of the raw text")


class TextRecord(base.DatasetRecord):
    """Fields of all texts without a source, for character language models."""

    form: ClassVar = "characters"
    collector: ClassVar = "collect-text"
    domain: str = Field(pattern=r"^[\w-]+$", description="Domain of the text")
    max_characters: Count = Field(description="Longer sentences are dropped and counted")
    sentences: dict[base.SplitName, Count] = Field(
        default={}, description="Maximum number of sentences of a split: the first that fit; default: all"
    )
    expected: dict[base.SplitName, ExpectedUtterances] = Field(
        default={}, description="Sizes and digests that the prepared splits must have"
    )
    size: TextSize | None = Field(
        default=None, description="Expected size, for `plan`; null = `plan` needs the encoded corpus"
    )

    @property
    def languages(self) -> tuple[str, ...]:
        """The only language."""
        return ("en",)


class CharacterDataset(TextRecord, FromText):
    """Text of the grammar, or from public addresses."""

    kind: Literal["characters"] = Field(description="Text without speech, in the characters of transcripts")


class OwnText(TextRecord, OwnFolder):
    """Text of the user's own: a folder with <split>.txt, one sentence per line."""

    suffix: ClassVar = ".txt"
    kind: Literal["own-text"] = Field(description="Text without speech, in a folder of the user's own")


SpokenDataset = ReadAloudDataset | RecordedDataset | ManifestDataset
WrittenDataset = ReadAloudDataset | CharacterDataset | OwnText
"""Datasets that begin with text."""

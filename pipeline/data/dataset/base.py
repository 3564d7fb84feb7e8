"""What the records of all datasets are made of."""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipeline.core.schema import Bytes, Closed, Count, Positive, Seed, nearest
from pipeline.data.languages import canonical


def no_yaml_word(value: Any) -> Any:
    """Raise ValueError for what YAML makes of `no`, the code of Norwegian."""
    if isinstance(value, bool):
        raise ValueError('a language; YAML reads no as false, so write "no" in quotation marks')
    return value


Language = Annotated[str, AfterValidator(canonical), BeforeValidator(no_yaml_word)]
"""A code of ISO 639, shortened where there is a shorter one (`zho` is `zh`)."""
TokeniserName = Literal["moses", "none"]
Segmenter = Literal["jieba", "characters"]
SplitName = Literal["train", "dev", "test", "test2", "test3", "test4", "test5"]
FURTHER_TESTS: tuple[SplitName, ...] = ("test2", "test3", "test4", "test5")


class BpeSubwords(Closed):
    """A byte-pair encoding (sentencepiece), of both languages unless the target side has its own."""

    kind: Literal["bpe"] = Field(description="Byte-pair encoding")
    vocab_size: Count = Field(description="Entries, the four reserved ids included")
    sample_pairs: Count = Field(description="Training pairs it is learnt from, drawn at random; all if there are fewer")
    seed: Seed = Field(default=1, description="Seed of that draw")


class WordVocabulary(Closed):
    """The most frequent words of one side; all others are the one symbol <unk>, in the output too."""

    kind: Literal["word"] = Field(description="Words, separated by spaces in the tokenised text")
    vocab_size: Count = Field(description="Entries, the four reserved ids included")


class SymbolVocabulary(Closed):
    """Each space-separated symbol whole, as of linearised trees."""

    kind: Literal["symbols"] = Field(description="Every symbol of the training text is an entry")


class CorpusSize(Closed):
    """How large the encoded corpus is expected to be, for `plan`; once it is encoded, what it has is counted."""

    pairs: list[Count] = Field(min_length=3, description="Sentence pairs of train, dev, and each test set")
    src_subwords: Positive = Field(description="Subwords of a source sentence, on average")
    tgt_subwords: Positive = Field(description="Subwords of a target sentence, on average")
    tgt_vocab: Count | None = Field(default=None, description="Entries of the target vocabulary, if its own symbols")
    raw_bytes: Bytes = Field(description="Bytes of the raw splits, both sides")


class DatasetRecord(Closed):
    """What is common to all datasets."""

    form: ClassVar[Literal["sentences", "trees", "speech", "characters"]]
    """What training reads of it, and so which stages prepare it."""
    collector: ClassVar[str | None] = None
    """The stage that brings its raw data together; None where they are the user's own."""
    is_read_aloud: ClassVar[bool] = False

    name: str = Field(description="Name of the file, given by `load_dataset`")
    title: str = Field(description="What it is, in a line")
    licence: str = Field(description="Under which terms the text may be used; by default those of the files it names")
    citation: str = Field(description="What to cite when using it")
    stands_in_for: str | None = Field(default=None, description="What it replaces at a smaller scale, and why")
    dev_set: str = Field(description="Name of the dev set, shown with every score on it")
    test_set: str = Field(description="Name of the test set, shown with every score on it")
    further_test_sets: list[str] = Field(
        default=[], max_length=len(FURTHER_TESTS), description="Names of further test sets: splits test2, test3, …"
    )

    @property
    def test_sets(self) -> dict[SplitName, str]:
        """Every test set's name by its split."""
        return {"test": self.test_set, **dict(zip(FURTHER_TESTS, self.further_test_sets, strict=False))}

    @property
    def split_names(self) -> tuple[SplitName, ...]:
        return ("train", "dev", *self.test_sets)


class TokenisedRecord(DatasetRecord):
    """What is common to all datasets of subwords or other symbols on both sides."""

    subwords: Annotated[BpeSubwords | WordVocabulary, Field(discriminator="kind")] = Field(
        description="The models' vocabulary, of the source side alone if the target has one"
    )
    tgt_subwords: Annotated[BpeSubwords | WordVocabulary | SymbolVocabulary, Field(discriminator="kind")] | None = (
        Field(default=None, description="The target side's own vocabulary; null = one for both sides")
    )
    size: CorpusSize | None = Field(default=None, description="Expected size; null = `plan` waits until it is encoded")

    @model_validator(mode="after")
    def size_is_of_all_splits(self):
        if self.size and len(self.size.pairs) != len(self.split_names):
            raise ValueError(f"size.pairs needs a number for each of {', '.join(self.split_names)}")
        return self


def check_splits(dataset: DatasetRecord, described: dict[SplitName, Any]) -> None:
    """Raises ValueError unless exactly the dataset's splits are described."""
    if missing := set(dataset.split_names) - set(described):
        raise ValueError(f"split {', '.join(sorted(missing))} is missing")
    if unknown := set(described) - set(dataset.split_names):
        raise ValueError(f"split {', '.join(sorted(unknown))} has no name under further_test_sets")


def check_places(named: set[str], described: Iterable[str], key: str) -> None:
    """Raises ValueError unless the splits name exactly what is described under `key`."""
    for name in sorted(named - set(described)):
        raise ValueError(f"splits name {name}, which is not under {key}{nearest(name, described)}")
    if unused := set(described) - named:
        raise ValueError(f"no split uses {key.removesuffix('s')} {', '.join(sorted(unused))}")


class LicensedPackages(Closed):
    """Data that must be had from its owners: config.yaml names the folders that hold it."""

    packages: dict[str, str] = Field(default={}, description="Licensed packages: what the folder in config.yaml holds")
    otherwise: str | None = Field(
        default=None, description="Dataset that stands in as long as config.yaml names no folder for a package"
    )

    @property
    def may_be_missing(self) -> bool:
        return bool(self.packages)

    @model_validator(mode="after")
    def has_a_stand_in(self):
        if self.may_be_missing != bool(self.otherwise):
            raise ValueError("needs `otherwise` where there are packages, and only there")
        return self


class Placed(Closed):
    """What is in a file that is fetched, or in files of a licensed package."""

    source: str | None = Field(default=None, description="A name in workflow/files, or under `sources`")
    package: str | None = Field(default=None, description="A name under `packages`")

    @property
    def place(self) -> str:
        """Name of its source or package."""
        name = self.source or self.package
        assert name, "has_one_place"
        return name


class GrammarSource(Closed):
    """What the embedded grammar is to write."""

    domain: Literal["film", "search"] = Field(description="Full sentences of film scripts, or search queries")
    sizes: dict[SplitName, Count] = Field(description="Pairs of each split")
    seed: Seed = Field(description="Seed of all its choices")
    chained: dict[SplitName, Count] = Field(
        default={},
        description="Splits of which a line is several sentences in a row, and the fewest English words of a line, "
        "punctuation not counted",
    )
    words: Annotated[tuple[Count, Count], Field(strict=False)] = Field(
        default=(3, 40), description="Fewest and most English words of a sentence, punctuation not counted"
    )
    vocabulary: Count | None = Field(
        default=None, description="Only the so many most frequent English words of the domain, names aside; null = all"
    )

    @model_validator(mode="after")
    def chained_splits_have_a_size(self):
        if unknown := set(self.chained) - set(self.sizes):
            raise ValueError(f"chained: split {', '.join(sorted(unknown))} has no size")
        return self

"""Building blocks of the records of all datasets."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipeline.core.schema import Bytes, Closed, Count, Positive, Seed, nearest
from pipeline.data.languages import canonical


def no_yaml_word(value: Any) -> Any:
    """Refuse the boolean that YAML makes of `no`, the code of Norwegian."""
    if isinstance(value, bool):
        raise ValueError('a language; YAML reads no as false, so write "no" in quotation marks')
    return value


Language = Annotated[str, AfterValidator(canonical), BeforeValidator(no_yaml_word)]
"""Standard BCP 47 tag: `zho` becomes `zh`, and `pt_br` becomes `pt-BR`."""
TokeniserName = Literal["moses", "none"]
Segmenter = Literal["jieba", "characters"]
SplitName = Literal["train", "dev", "test", "test2", "test3", "test4", "test5"]
FURTHER_TESTS: tuple[SplitName, ...] = ("test2", "test3", "test4", "test5")


class BpeSubwords(Closed):
    """Byte-pair encoding (sentencepiece), of both languages unless the target side has its own."""

    kind: Literal["bpe"] = Field(description="Byte-pair encoding")
    vocab_size: Count = Field(description="Entries, the four reserved ids included")
    sample_pairs: Count = Field(
        description="Size of the random sample of training pairs that it is learnt from; all pairs if fewer"
    )
    seed: Seed = Field(default=1, description="Seed of the sample")


class WordVocabulary(Closed):
    """The most frequent words of one side; all others are the symbol <unk>, in the output too."""

    kind: Literal["word"] = Field(description="Words, separated by spaces in the tokenised text")
    vocab_size: Count = Field(description="Entries, the four reserved ids included")


class SymbolVocabulary(Closed):
    """Vocabulary of whole space-separated symbols, e.g. of linearised trees."""

    kind: Literal["symbols"] = Field(description="One entry for each symbol of the training text")


class CorpusSize(Closed):
    """Expected size of the encoded corpus, for `plan`; an encoded corpus is counted instead."""

    pairs: list[Count] = Field(min_length=3, description="Sentence pairs of train, dev, and each test set")
    src_subwords: Positive = Field(description="Subwords of a source sentence, on average")
    tgt_subwords: Positive = Field(description="Subwords of a target sentence, on average")
    tgt_vocab: Count | None = Field(
        default=None, description="Entries of the target vocabulary, if `tgt_subwords` has symbols"
    )
    raw_bytes: Bytes = Field(description="Bytes of the raw splits, both sides")


class DatasetRecord(Closed):
    """Fields of all datasets."""

    form: ClassVar[Literal["sentences", "trees", "speech", "characters"]]
    """Kind of data that training reads, which decides the stages that prepare it."""
    collector: ClassVar[str | None] = None
    """Stage that collects the raw data; None if the user provides them."""
    is_read_aloud: ClassVar[bool] = False

    name: str = Field(description="Name of the file, given by `load_dataset`")
    title: str = Field(description="One-line description")
    licence: str = Field(description="Terms of use; default: those of its files")
    citation: str = Field(description="Citation for users of the data")
    stands_in_for: str | None = Field(default=None, description="Dataset that it replaces at a smaller scale, and why")
    dev_set: str = Field(description="Name of the dev set, shown with every score on it")
    test_set: str = Field(description="Name of the test set, shown with every score on it")
    further_test_sets: list[str] = Field(
        default=[], max_length=len(FURTHER_TESTS), description="Names of further test sets: splits test2, test3, …"
    )

    @property
    def test_sets(self) -> dict[SplitName, str]:
        """Names of the test sets by split."""
        return {"test": self.test_set, **dict(zip(FURTHER_TESTS, self.further_test_sets, strict=False))}

    @property
    def split_names(self) -> tuple[SplitName, ...]:
        """Names of all splits, test sets last."""
        return ("train", "dev", *self.test_sets)

    def name_of_split(self, split: SplitName) -> str:
        """Return the name of a split as shown beside every score; train has no name of its own."""
        return self.dev_set if split == "dev" else self.test_sets.get(split, f"{self.name} {split}")


class TokenisedRecord(DatasetRecord):
    """Fields of all datasets with subwords or other symbols on both sides."""

    subwords: Annotated[BpeSubwords | WordVocabulary, Field(discriminator="kind")] = Field(
        description="Vocabulary of both sides, or of the source side if `tgt_subwords` is set"
    )
    tgt_subwords: Annotated[BpeSubwords | WordVocabulary | SymbolVocabulary, Field(discriminator="kind")] | None = (
        Field(default=None, description="Vocabulary of the target side; null = `subwords` for both sides")
    )
    size: CorpusSize | None = Field(
        default=None, description="Expected size, for `plan`; null = `plan` needs the encoded corpus"
    )

    @model_validator(mode="after")
    def size_is_of_all_splits(self):
        """Refuse an expected size that does not name every split."""
        if self.size and len(self.size.pairs) != len(self.split_names):
            raise ValueError(f"size.pairs needs a number for each of {', '.join(self.split_names)}")
        return self


def check_splits(dataset: DatasetRecord, described: dict[SplitName, Any]) -> None:
    """Check that exactly the splits of a `dataset` are `described`.

    Raises:
        ValueError: A split is missing or unknown.
    """
    if missing := set(dataset.split_names) - set(described):
        raise ValueError(f"split {', '.join(sorted(missing))} is missing")
    if unknown := set(described) - set(dataset.split_names):
        raise ValueError(f"split {', '.join(sorted(unknown))} has no name under further_test_sets")


def check_places(named: set[str], described: Iterable[str], key: str) -> None:
    """Check that the splits name exactly the entries that are `described` under `key`, sources or packages.

    Raises:
        ValueError: An entry is missing or unused.
    """
    for name in sorted(named - set(described)):
        raise ValueError(f"splits name {name}, but it is not under {key}{nearest(name, described)}")
    if unused := set(described) - named:
        raise ValueError(f"no split uses {key.removesuffix('s')} {', '.join(sorted(unused))}")


def plain_name(name: str) -> str:
    """Refuse a file name that holds a folder, or is empty."""
    if name != Path(name).name or name in ("", ".."):
        raise ValueError("must be a plain file name")
    return name


FileName = Annotated[str, AfterValidator(plain_name)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Md5 = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class Documents(Closed):
    """Files of one folder on the web, read in order and verified by the digest of the split."""

    folder: str = Field(pattern="/$", description="Address of the folder")
    names: list[FileName] = Field(min_length=1, description="Files in the folder, in reading order")


class Source(Closed):
    """One file to fetch."""

    urls: list[str] = Field(default=[], description="Addresses, tried in turn; none = only a mirror has it")
    path: str | None = Field(
        default=None, description="The user's own file, read in place; a relative path begins in the project"
    )
    mirror: str | None = Field(default=None, description="Path below the mirror; null = the source's name")
    sha256: Sha256 | None = Field(default=None, description="SHA-256 of the file")
    md5: Md5 | None = Field(default=None, description="MD5 of the file, if no SHA-256 is published")
    bytes: Bytes | None = Field(default=None, description="Size of the file, in bytes, if known")
    documents: Documents | None = Field(
        default=None, description="Web documents that the file of trees was joined from"
    )
    licence: str | None = Field(default=None, description="Terms of use; null = those of its origin, or of the dataset")
    redistributable: bool = Field(default=False, description="The licence lets anyone redistribute the file")

    @model_validator(mode="after")
    def has_one_checksum(self):
        """Refuse a record without exactly one checksum."""
        if (self.sha256 is None) == (self.md5 is None):
            raise ValueError("needs exactly one of sha256 and md5")
        return self

    @property
    def known_hash(self) -> str:
        """Checksum with its algorithm, as pooch writes it."""
        return f"sha256:{self.sha256}" if self.sha256 else f"md5:{self.md5}"


Sources = dict[FileName, Source]


class LicensedPackages(Closed):
    """Data that users must get from its owners; config.yaml names the folders that hold it."""

    packages: dict[str, str] = Field(
        default={}, description="Licensed packages by name, with a description of the folder that config.yaml names"
    )
    otherwise: str | None = Field(
        default=None, description="Dataset to use instead if config.yaml names no folder for a package"
    )

    @property
    def may_be_missing(self) -> bool:
        """True if the data depends on a folder named in config.yaml."""
        return bool(self.packages)

    @model_validator(mode="after")
    def has_a_stand_in(self):
        """Refuse data that may be missing without a stand-in, and a stand-in without need."""
        if self.may_be_missing != bool(self.otherwise):
            raise ValueError("set `otherwise` if, and only if, there are `packages`")
        return self


class Placed(Closed):
    """Data in a fetched file or in files of a licensed package."""

    source: str | None = Field(default=None, description="A name in workflow/files, or under `sources`")
    package: str | None = Field(default=None, description="A name under `packages`")

    @property
    def place(self) -> str:
        """Name of the source or package."""
        name = self.source or self.package
        assert name, "has_one_place"
        return name


class GrammarSource(Closed):
    """Settings of text that the embedded grammar writes."""

    domain: Literal["film", "search"] = Field(description="Full sentences of film scripts, or search queries")
    sizes: dict[SplitName, Count] = Field(description="Pairs of each split")
    seed: Seed = Field(description="Seed of all random choices")
    chained: dict[SplitName, Count] = Field(
        default={},
        description="Splits whose lines join several sentences, with the minimum number of English words per line, "
        "punctuation excluded",
    )

    @model_validator(mode="after")
    def chained_splits_have_a_size(self):
        """Refuse chained splits without a size."""
        if unknown := set(self.chained) - set(self.sizes):
            raise ValueError(f"chained: split {', '.join(sorted(unknown))} has no size")
        return self

"""A dataset as data: the records of `workflow/datasets/<name>.yaml`."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.config import Closed, Count, load_yaml, validate
from pipeline.errors import UserError

Language = Literal["en", "de", "fr", "zh"]
SplitName = Literal["train", "dev", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "dev", "test")
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Md5 = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class Source(Closed):
    """One file to fetch."""

    urls: list[str] = Field(min_length=1, description="Addresses, tried in turn")
    mirror: str | None = Field(default=None, description="Path below the mirror; null = the source's name")
    sha256: Sha256 | None = Field(default=None, description="SHA-256 of the file")
    md5: Md5 | None = Field(default=None, description="MD5 of the file, where nobody published a SHA-256")
    bytes: Count | None = Field(default=None, description="Size of the file, in bytes, where known")

    @model_validator(mode="after")
    def has_one_checksum(self):
        if (self.sha256 is None) == (self.md5 is None):
            raise ValueError("needs exactly one of sha256 and md5")
        return self

    @property
    def known_hash(self) -> str:
        return f"sha256:{self.sha256}" if self.sha256 else f"md5:{self.md5}"


class Side(Closed):
    """One language of a part: a file, a member of an archive, or a file of a licensed package.

    `.gz` is unpacked, `.sgm` read by segments.
    """

    source: str | None = Field(default=None, description="A name under `sources`")
    package: str | None = Field(default=None, description="A name under `packages`")
    member: str | None = Field(
        default=None, description="Path in the archive or below the package's folder; null = the file itself"
    )

    @model_validator(mode="after")
    def has_one_place(self):
        if (self.source is None) == (self.package is None) or (self.package and not self.member):
            raise ValueError("needs either a source, or a package and a member")
        return self

    @property
    def file_name(self) -> str:
        return self.member or self.source


class Part(Closed):
    """Parallel lines from one place; line n of one side translates line n of the other."""

    src: Side = Field(description="Where the source side is")
    tgt: Side = Field(description="Where the target side is")
    lines: Count | None = Field(default=None, description="Lines a side, asserted")


class DownloadedSplit(Closed):
    """The parts of a split, joined in order."""

    parts: list[Part] = Field(min_length=1, description="Joined in this order")


class Expected(Closed):
    """What a split must be, so that no score is taken on another set of that name."""

    lines: Count = Field(description="Lines a side")
    src_sha256: Sha256 | None = Field(default=None, description="Digest of raw/<split>.<src>")
    tgt_sha256: Sha256 | None = Field(default=None, description="Digest of raw/<split>.<tgt>")


class Cleaning(Closed):
    """Which training pairs are left out; counts are of Moses tokens. Empty sides always are."""

    max_tokens: Count = Field(description="A pair with a longer side is left out")
    max_ratio: float = Field(ge=1, strict=False, description="Longer side over shorter side; above it, left out")


class BpeSubwords(Closed):
    """A byte-pair encoding (sentencepiece), of both languages unless the target side has its own."""

    kind: Literal["bpe"] = Field(description="Byte-pair encoding")
    vocab_size: Count = Field(description="Entries, the four reserved ids included")
    sample_pairs: Count = Field(description="Training pairs it is learnt from, drawn at random; all if there are fewer")
    seed: Annotated[int, Field(ge=0)] = Field(default=1, description="Seed of that draw")


class SymbolVocabulary(Closed):
    """Each space-separated symbol whole, as of linearised trees."""

    kind: Literal["symbols"] = Field(description="Every symbol of the training text is an entry")


class CorpusSize(Closed):
    """How large the encoded corpus is expected to be, for `plan`; once it is encoded, what it has is counted."""

    pairs: tuple[Count, Count, Count] = Field(strict=False, description="Sentence pairs of train, dev and test")
    src_subwords: float = Field(gt=0, strict=False, description="Subwords of a source sentence, on average")
    tgt_subwords: float = Field(gt=0, strict=False, description="Subwords of a target sentence, on average")
    tgt_vocab: Count | None = Field(default=None, description="Entries of the target vocabulary, if its own symbols")
    raw_bytes: Count = Field(description="Bytes of the raw splits, both sides")


class DatasetRecord(Closed):
    """What is common to all datasets."""

    name: str = Field(description="Name of the file, given by `load_dataset`")
    title: str = Field(description="What it is, in a line")
    licence: str = Field(description="Under which terms the text may be used")
    citation: str = Field(description="What to cite when using it")
    stands_in_for: str | None = Field(default=None, description="What it replaces at a smaller scale, and why")
    dev_set: str = Field(description="Name of the dev set, shown with every score on it")
    test_set: str = Field(description="Name of the test set, shown with every score on it")
    subwords: BpeSubwords = Field(description="The models' vocabulary, of the source side alone if the target has one")
    tgt_subwords: Annotated[BpeSubwords | SymbolVocabulary, Field(discriminator="kind")] | None = Field(
        default=None, description="The target side's own vocabulary; null = one for both sides"
    )
    size: CorpusSize | None = Field(default=None, description="Expected size; null = `plan` waits until it is encoded")


class CorpusRecord(DatasetRecord):
    """What is common to all datasets of sentence pairs."""

    src: Language = Field(description="Source language")
    tgt: Language = Field(description="Target language")
    expected: dict[SplitName, Expected] = Field(default={}, description="Asserted of the raw splits")
    cleaning: Cleaning = Field(description="Which training pairs are left out")
    tokeniser: Literal["moses"] = Field(description="sacremoses, no escaping, no splitting of dashes")
    lowercase: bool = Field(default=False, description="Lower-case the tokenised text")
    compound_split: bool = Field(description="Whether the paper's BLEU splits compounds (`-` -> `##AT##-##AT##`)")

    @property
    def languages(self) -> tuple[Language, Language]:
        return self.src, self.tgt


class LicensedPackages(Closed):
    """Data that must be had from its owners: config.yaml names the folders that hold it."""

    packages: dict[str, str] = Field(default={}, description="Licensed packages: what the folder in config.yaml holds")
    otherwise: str | None = Field(
        default=None, description="Dataset that stands in as long as config.yaml names no folder for a package"
    )

    @model_validator(mode="after")
    def has_a_stand_in(self):
        if bool(self.packages) != bool(self.otherwise):
            raise ValueError("needs `otherwise` where there are packages, and only there")
        return self


class DownloadedDataset(CorpusRecord, LicensedPackages):
    """Parallel text from public addresses or from licensed packages."""

    kind: Literal["download"] = Field(description="Fetched, or taken from the folder of a licensed package")
    sources: dict[str, Source] = Field(default={}, description="Files to fetch, by file name")
    splits: dict[SplitName, DownloadedSplit] = Field(description="Where train, dev and test come from")

    @property
    def sides(self) -> list[Side]:
        return [side for split in self.splits.values() for part in split.parts for side in (part.src, part.tgt)]

    def package_members(self, package: str) -> list[str]:
        """Files of a package that splits read."""
        return list(dict.fromkeys(side.member for side in self.sides if side.package == package))

    @model_validator(mode="after")
    def splits_name_places(self):
        if missing := set(SPLITS) - set(self.splits):
            raise ValueError(f"split {', '.join(sorted(missing))} is missing")
        for where in ("source", "package"):
            named, described = {getattr(side, where) for side in self.sides} - {None}, set(getattr(self, f"{where}s"))
            if unknown := named - described:
                raise ValueError(f"splits name {', '.join(sorted(unknown))}, which is not under {where}s")
            if unused := described - named:
                raise ValueError(f"no split uses {where} {', '.join(sorted(unused))}")
        if unsafe := [name for name in self.sources if name != Path(name).name]:
            raise ValueError(f"source {unsafe[0]!r} must be a plain file name")
        return self


class GrammarSource(Closed):
    """What the embedded grammar is to write."""

    domain: Literal["film", "search"] = Field(description="Full sentences of film scripts, or search queries")
    sizes: dict[SplitName, Count] = Field(description="Pairs of each split")
    seed: Annotated[int, Field(ge=0)] = Field(description="Seed of all its choices")


class GrammarDataset(CorpusRecord):
    """Parallel text written by the embedded grammar; needs no download."""

    kind: Literal["grammar"] = Field(description="Written by the embedded grammar; needs no download")
    generator: GrammarSource = Field(description="What the grammar writes")


class Documents(Closed):
    """Files of one folder on the web, read one after the other; they are verified by the digest of the split."""

    folder: str = Field(pattern="/$", description="Address of the folder")
    names: list[str] = Field(min_length=1, description="Files in it, in the order in which they are read")


class TreeSource(Source):
    """Trees in Penn bracketing: one file, or else the documents that it was joined from."""

    urls: list[str] = Field(default=[], description="Addresses of the one file, tried in turn")
    documents: Documents = Field(description="Where the trees are published, if the one file is nowhere to be had")


class TreePart(Closed):
    """Trees from one place: of a source, or of files of a licensed package."""

    source: str | None = Field(default=None, description="A name under `sources`")
    package: str | None = Field(default=None, description="A name under `packages`")
    files: list[str] = Field(default=[], description="Files of the package; `{0200..0299}` stands for each number")
    first: Count = Field(default=1, description="Number of the first tree taken")
    trees: Count | None = Field(default=None, description="Trees taken; null = all from the first on")
    parser: str | None = Field(default=None, description="What parsed the sentences; null = they were parsed by hand")

    @model_validator(mode="after")
    def has_one_place(self):
        if (self.source is None) == (self.package is None) or bool(self.files) != bool(self.package):
            raise ValueError("needs either a source, or a package and its files")
        return self


class TreeSplit(Closed):
    """The parts of a split, joined in order."""

    parts: list[TreePart] = Field(min_length=1, description="Joined in this order")


class ExpectedTrees(Closed):
    """What a split must be, so that no score is taken on another set of that name."""

    lines: Count = Field(description="Trees of the split, one a line")
    sha256: Sha256 | None = Field(default=None, description="Digest of the split's raw trees")


class TreebankRecord(DatasetRecord):
    """What is common to all treebanks: sentences on the source side, their linearised trees on the target side."""

    src: Literal["en"] = Field(description="Language of the sentences")
    tgt: Literal["brackets"] = Field(default="brackets", description="Linearised trees")
    expected: dict[SplitName, ExpectedTrees] = Field(default={}, description="Asserted of the raw splits")

    @property
    def languages(self) -> tuple[str, str]:
        return self.src, self.tgt


class TreebankDataset(TreebankRecord, LicensedPackages):
    """Trees that others annotated."""

    kind: Literal["treebank"] = Field(description="Fetched, or taken from the folder of a licensed package")
    sources: dict[str, TreeSource] = Field(default={}, description="Files to fetch, by file name")
    splits: dict[SplitName, TreeSplit] = Field(description="Where train, dev and test come from")

    def package_members(self, package: str) -> list[str]:
        """Files of a package that splits read; `{0200..0299}` stands for each number."""
        parts = [part for split in self.splits.values() for part in split.parts if part.package == package]
        return [file for part in parts for file in part.files]

    @model_validator(mode="after")
    def splits_name_places(self):
        if missing := set(SPLITS) - set(self.splits):
            raise ValueError(f"split {', '.join(sorted(missing))} is missing")
        parts = [part for split in self.splits.values() for part in split.parts]
        for places, named in (
            (self.sources, {part.source for part in parts} - {None}),
            (self.packages, {part.package for part in parts} - {None}),
        ):
            if named != set(places):
                raise ValueError(f"splits name {sorted(named)}, but described are {sorted(places)}")
        return self


class ExtraTrees(Closed):
    """Training trees that stand for those of a parser, which makes errors."""

    parser: str = Field(description="What they stand for, in words")
    after: Count = Field(description="Training trees before them, which are free of error")
    errors: float = Field(ge=0, le=1, strict=False, description="Share of phrases whose last part is set too high")
    seed: Annotated[int, Field(ge=0)] = Field(description="Seed of the errors")


class GrammarTreebank(TreebankRecord):
    """English sentences of the embedded grammar, with the trees they were derived by; needs no download."""

    kind: Literal["grammar-treebank"] = Field(description="Written by the embedded grammar; needs no download")
    generator: GrammarSource = Field(description="What the grammar writes")
    extra: ExtraTrees | None = Field(default=None, description="Which training trees stand for a parser's; null = none")


Treebank = TreebankDataset | GrammarTreebank
AnyDataset = DownloadedDataset | GrammarDataset | Treebank
Dataset = Annotated[AnyDataset, Field(discriminator="kind")]


def load_dataset(path: Path) -> AnyDataset:
    """Read a dataset file. Raises UserError on unknown keys, bad values or a missing file."""
    path = Path(path)
    record = load_yaml(path)
    if isinstance(record, dict):
        record = {"name": path.stem} | record
    return validate(Dataset, record, str(path))


def load_parallel(path: Path) -> DownloadedDataset | GrammarDataset:
    """Raises UserError as `load_dataset`, and when the file describes no parallel text."""
    return of_kind(load_dataset(path), CorpusRecord, f"{path}: not parallel text")


def load_treebank(path: Path) -> Treebank:
    """Raises UserError as `load_dataset`, and when the file describes no treebank."""
    return of_kind(load_dataset(path), TreebankRecord, f"{path}: not a treebank")


def of_kind(dataset: DatasetRecord, kind: type[DatasetRecord], fault: str) -> DatasetRecord:
    if not isinstance(dataset, kind):
        raise UserError(f"{fault}, its kind is {dataset.kind!r}; this stage is for other datasets")
    return dataset

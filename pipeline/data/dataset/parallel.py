"""Records of parallel text."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Closed, Count, Number
from pipeline.data.dataset import base
from pipeline.data.languages import base_language, is_unspaced

Written = Literal["en", "de", "fr", "zh"]
"""Languages that the grammar writes."""


class Side(base.Placed):
    """One language of a part: a file, a member of an archive, or a file of a licensed package.

    `.gz` is decompressed; `.sgm`, `.sgml` and `.xml` are read by segments.
    """

    member: str | None = Field(
        default=None, description="Path in the archive or below the package's folder; null = the file itself"
    )
    translator: str | None = Field(
        default=None, description="Translator whose reference is read from an .xml file; null = the source side"
    )
    reference: Count | None = Field(
        default=None, description="Number, from 1, of the reference that is read from a NIST .xml file"
    )

    @model_validator(mode="after")
    def names_one_reference(self):
        """Refuse two settings that choose a reference, or one for a file that has a single reference."""
        if self.translator is not None and self.reference is not None:
            raise ValueError("takes translator (files of WMT) or reference (files of NIST), not both")
        if self.reference is not None and not self.file_name.lower().removesuffix(".gz").endswith(".xml"):
            raise ValueError("reference is for .xml files of NIST")
        return self

    @model_validator(mode="after")
    def has_one_place(self):
        """Refuse a side without exactly one place, or a package without a member."""
        if (self.source is None) == (self.package is None) or (self.package and not self.member):
            raise ValueError("needs either a source, or a package and a member")
        return self

    @property
    def file_name(self) -> str:
        """Name of the file that holds the lines."""
        return self.member or self.place


class Part(Closed):
    """Parallel lines from one place; line n of one side translates line n of the other."""

    src: Side = Field(description="Place of the source side")
    tgt: Side = Field(description="Place of the target side")
    further_references: list[Side] = Field(default=[], description="Further translations of a dev or test set")
    first: Count = Field(default=1, description="Number of the first line to take, from 1")
    every: Count = Field(default=1, description="Take every n-th line from the first one on")
    lines: Count | None = Field(default=None, description="Expected number of lines per side")

    @property
    def sides(self) -> list[Side]:
        """All sides, source first."""
        return [self.src, self.tgt, *self.further_references]


class DownloadedSplit(Closed):
    """Parts of a split, joined in order."""

    parts: list[Part] = Field(min_length=1, description="Parts, joined in this order")

    @property
    def references(self) -> int:
        """Number of references."""
        return 1 + len(self.parts[0].further_references)

    @model_validator(mode="after")
    def parts_have_equal_references(self):
        """Refuse parts with different numbers of references."""
        if len({len(part.further_references) for part in self.parts}) > 1:
            raise ValueError("all parts of a split need the same number of references")
        return self


class Expected(Closed):
    """Size and digests that a split must have, so that no score is computed on another set of that name."""

    lines: Count = Field(description="Lines per side")
    src_sha256: base.Sha256 | None = Field(default=None, description="Digest of raw/<split>.<src>")
    tgt_sha256: base.Sha256 | None = Field(default=None, description="Digest of raw/<split>.<tgt>")


class Cleaning(Closed):
    """Limits on training pairs; pairs with an empty side are always left out.

    Counts are of tokens, or with `tokeniser: none` of words and punctuation marks.
    """

    max_tokens: Count = Field(description="Maximum length of a side; longer pairs are dropped")
    max_ratio: Number = Field(
        ge=1, description="Maximum ratio of the longer to the shorter side; other pairs are dropped"
    )


class CorpusRecord(base.TokenisedRecord):
    """Fields of all datasets of sentence pairs."""

    form: ClassVar = "sentences"
    src: base.Language = Field(description="Source language")
    tgt: base.Language = Field(description="Target language")
    expected: dict[base.SplitName, Expected] = Field(
        default={}, description="Sizes and digests that the raw splits must have"
    )
    cleaning: Cleaning = Field(description="Limits on training pairs")
    tokeniser: base.TokeniserName = Field(
        description="moses: sacremoses without escaping and without splitting of dashes; "
        "none: subwords of the raw text, for any language, which keeps its spacing"
    )
    segmenter: base.Segmenter | None = Field(
        default=None, description="Segments Chinese text instead of Moses; null = no segmenter"
    )
    lowercase: bool = Field(default=False, description="Lower-case the tokenised text")
    compound_split: bool = Field(description="The paper's BLEU splits compounds (`-` -> `##AT##-##AT##`)")
    bleu: Literal["multi-bleu", "nist"] = Field(
        default="multi-bleu",
        description="The paper's BLEU. multi-bleu: of tokenised text; "
        "nist: case-insensitive, with the length of the shortest reference",
    )

    @property
    def languages(self) -> tuple[base.Language, base.Language]:
        """Source and target language."""
        return self.src, self.tgt

    def references(self, split: base.SplitName) -> list[str]:
        """Return the suffixes of a split's target files: the language, then `en2`, `en3` and so on."""
        return [self.tgt]

    @model_validator(mode="after")
    def segmenter_has_chinese(self):
        """Refuse a segmenter without Chinese text to segment."""
        if self.segmenter and "zh" not in map(base_language, self.languages):
            raise ValueError("segmenter is for Chinese, which is on neither side")
        if self.segmenter and self.tokeniser == "none":
            raise ValueError("segmenter has no effect with tokeniser: none")
        return self

    @model_validator(mode="after")
    def tokeniser_knows_the_languages(self):
        """Refuse Moses for text without spaces, and whole words without a tokeniser."""
        segmented = [language for language in self.languages if self.segmenter and base_language(language) == "zh"]
        unknown = [language for language in self.languages if is_unspaced(language) and language not in segmented]
        if unknown and self.tokeniser == "moses":
            raise ValueError(f"tokeniser: moses splits at spaces, but {unknown[0]} has none between words; write none")
        whole_words = (self.subwords, self.tgt_subwords)
        if self.tokeniser == "none" and any(isinstance(vocabulary, base.WordVocabulary) for vocabulary in whole_words):
            raise ValueError("a vocabulary of kind `word` needs the words of a tokeniser; write bpe")
        return self


class DownloadedDataset(CorpusRecord, base.LicensedPackages):
    """Parallel text from public addresses or from licensed packages."""

    collector: ClassVar = "download"
    kind: Literal["download"] = Field(description="Fetched, or taken from the folder of a licensed package")
    sources: base.Sources = Field(default={}, description="Files to fetch that workflow/files does not describe")
    splits: dict[base.SplitName, DownloadedSplit] = Field(description="Places of train, dev and test")

    @property
    def sides(self) -> list[Side]:
        """All sides of all parts."""
        return [side for split in self.splits.values() for part in split.parts for side in part.sides]

    def references(self, split: base.SplitName) -> list[str]:
        further = range(2, self.splits[split].references + 1)
        return [self.tgt, *(f"{self.tgt}{number}" for number in further)]

    def package_members(self, package: str) -> list[str]:
        """Return the files of a package that splits read."""
        return list(dict.fromkeys(side.member for side in self.sides if side.package == package and side.member))

    @model_validator(mode="after")
    def splits_name_places(self):
        """Refuse splits that do not name exactly the sources and packages, or several references of training pairs."""
        base.check_splits(self, self.splits)
        if self.splits["train"].references > 1:
            raise ValueError("splits.train: training pairs have one translation")
        for where in ("source", "package"):
            named, described = {getattr(side, where) for side in self.sides} - {None}, set(getattr(self, f"{where}s"))
            base.check_places(named, described, f"{where}s")
        return self


class GrammarDataset(CorpusRecord):
    """Parallel text written by the embedded grammar; needs no download."""

    collector: ClassVar = "grammar"
    kind: Literal["grammar"] = Field(description="Written by the embedded grammar; needs no download")
    src: Written = Field(description="Source language")
    tgt: Written = Field(description="Target language")
    generator: base.GrammarSource = Field(description="Settings of the grammar")

    @model_validator(mode="after")
    def every_split_has_a_size(self):
        """Refuse splits without a size."""
        base.check_splits(self, self.generator.sizes)
        return self

"""Records of treebanks."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Closed, Count, Number, Seed
from pipeline.data.dataset import base
from pipeline.data.dataset.files import Sha256, Sources


class TreePart(base.Placed):
    """Trees from one place: of a source, or of files of a licensed package."""

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


class TreebankRecord(base.TokenisedRecord):
    """What is common to all treebanks: sentences on the source side, their linearised trees on the target side."""

    form: ClassVar = "trees"
    src: Literal["en"] = Field(description="Language of the sentences")
    tgt: Literal["brackets"] = Field(default="brackets", description="Linearised trees")
    expected: dict[base.SplitName, ExpectedTrees] = Field(default={}, description="Asserted of the raw splits")

    @property
    def languages(self) -> tuple[str, str]:
        return self.src, self.tgt


class TreebankDataset(TreebankRecord, base.LicensedPackages):
    """Trees that others annotated."""

    collector: ClassVar = "collect-trees"
    kind: Literal["treebank"] = Field(description="Fetched, or taken from the folder of a licensed package")
    sources: Sources = Field(default={}, description="Files to fetch that workflow/files does not describe")
    splits: dict[base.SplitName, TreeSplit] = Field(description="Where train, dev and test come from")

    def package_members(self, package: str) -> list[str]:
        """Files of a package that splits read; `{0200..0299}` stands for each number."""
        parts = [part for split in self.splits.values() for part in split.parts if part.package == package]
        return [file for part in parts for file in part.files]

    @model_validator(mode="after")
    def splits_name_places(self):
        base.check_splits(self, self.splits)
        parts = [part for split in self.splits.values() for part in split.parts]
        base.check_places({part.source for part in parts if part.source}, self.sources, "sources")
        base.check_places({part.package for part in parts if part.package}, self.packages, "packages")
        return self


class ExtraTrees(Closed):
    """Training trees that stand for those of a parser, which makes errors."""

    parser: str = Field(description="What they stand for, in words")
    after: Count = Field(description="Training trees before them, which are free of error")
    errors: Number = Field(ge=0, le=1, description="Share of phrases whose last part is set too high")
    seed: Seed = Field(description="Seed of the errors")


class GrammarTreebank(TreebankRecord):
    """English sentences of the embedded grammar, with the trees they were derived by; needs no download."""

    collector: ClassVar = "grammar"
    kind: Literal["grammar-treebank"] = Field(description="Written by the embedded grammar; needs no download")
    generator: base.GrammarSource = Field(description="What the grammar writes")
    extra: ExtraTrees | None = Field(default=None, description="Which training trees stand for a parser's; null = none")


Treebank = TreebankDataset | GrammarTreebank

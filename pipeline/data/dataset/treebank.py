"""Records of treebanks."""

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from pipeline.core.schema import Closed, Count, Number, Seed
from pipeline.data.dataset import base


class TreePart(base.Placed):
    """Trees from one place: a source, or files of a licensed package."""

    files: list[str] = Field(default=[], description="Files of the package; `{0200..0299}` stands for each number")
    first: Count = Field(default=1, description="Number of the first tree to take, from 1")
    trees: Count | None = Field(default=None, description="Number of trees to take; null = all from the first on")
    parser: str | None = Field(default=None, description="Parser of the sentences; null = parsed by hand")

    @model_validator(mode="after")
    def has_one_place(self):
        """Refuse a part without exactly one place, or a package without files."""
        if (self.source is None) == (self.package is None) or bool(self.files) != bool(self.package):
            raise ValueError("needs either a source, or a package and its files")
        return self


class TreeSplit(Closed):
    """Parts of a split, joined in order."""

    parts: list[TreePart] = Field(min_length=1, description="Parts, joined in this order")


class ExpectedTrees(Closed):
    """Size and digest that a split must have, so that no score is computed on another set of that name."""

    lines: Count = Field(description="Number of trees of the split")
    sha256: base.Sha256 | None = Field(default=None, description="Digest of the split's raw trees")


class TreebankRecord(base.TokenisedRecord):
    """Fields of all treebanks: sentences on the source side, linearised trees on the target side."""

    form: ClassVar = "trees"
    src: Literal["en"] = Field(description="Language of the sentences")
    tgt: Literal["brackets"] = Field(default="brackets", description="Linearised trees")
    expected: dict[base.SplitName, ExpectedTrees] = Field(
        default={}, description="Sizes and digests that the raw splits must have"
    )

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.src, self.tgt


class TreebankDataset(TreebankRecord, base.LicensedPackages):
    """Trees annotated by others."""

    collector: ClassVar = "collect-trees"
    kind: Literal["treebank"] = Field(description="Fetched, or taken from the folder of a licensed package")
    sources: base.Sources = Field(default={}, description="Files to fetch that workflow/files does not describe")
    splits: dict[base.SplitName, TreeSplit] = Field(description="Places of train, dev and test")

    def package_members(self, package: str) -> list[str]:
        """Return the files of a package that splits read; `{0200..0299}` stands for each number."""
        parts = [part for split in self.splits.values() for part in split.parts if part.package == package]
        return [file for part in parts for file in part.files]

    @model_validator(mode="after")
    def splits_name_places(self):
        """Check that the splits name exactly the sources and packages."""
        base.check_splits(self, self.splits)
        parts = [part for split in self.splits.values() for part in split.parts]
        base.check_places({part.source for part in parts if part.source}, self.sources, "sources")
        base.check_places({part.package for part in parts if part.package}, self.packages, "packages")
        return self


class ExtraTrees(Closed):
    """Training trees with simulated parser errors."""

    parser: str = Field(description="Parser that the errors stand for")
    after: Count = Field(description="Number of error-free training trees before the extra ones")
    errors: Number = Field(ge=0, le=1, description="Share of phrases whose last child is attached too high")
    seed: Seed = Field(description="Seed of the errors")


class GrammarTreebank(TreebankRecord):
    """English sentences of the embedded grammar with their derivation trees; needs no download."""

    collector: ClassVar = "grammar"
    kind: Literal["grammar-treebank"] = Field(description="Written by the embedded grammar; needs no download")
    generator: base.GrammarSource = Field(description="Settings of the grammar")
    extra: ExtraTrees | None = Field(
        default=None, description="Training trees with simulated parser errors; null = none"
    )


Treebank = TreebankDataset | GrammarTreebank

"""Papers, scales, datasets and named decodings of a project, looked up by name."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.analysis.cells.cell import Row
from pipeline.analysis.claims import Claims, load_claims
from pipeline.analysis.figures.figure import Figure
from pipeline.analysis.training_curves import Floors, load_floors
from pipeline.config import DecodingConfig
from pipeline.core.errors import UserError
from pipeline.core.records.training import MeasuredNoise
from pipeline.core.schema import load_yaml_as, require_known, require_name, validate
from pipeline.data.dataset import Datasets, LicensedPackages, load_datasets
from pipeline.data.dataset.speech import OwnFolder
from pipeline.papers.config_file import Config
from pipeline.papers.content import CorpusContents
from pipeline.papers.paper import DecodingEntry, Examples, Paper, SystemEntry, TableEntry, TranscriptTable, load_paper
from pipeline.papers.scale import Scale


class Catalogue:
    """Papers, scales and datasets below `root`, for one configuration.

    Attributes:
        printed: Rows of printed tables by paper and table.
        claims: Claims by paper.
        scale: The configured scale.
    """

    def __init__(self, root: Path, config: dict[str, Any]):
        self.root = Path(root)
        self.config: Config = validate(Config, config, "config.yaml")
        self.papers: dict[str, Paper] = {}
        self.printed: dict[str, dict[str, list[Row]]] = {}
        self.claims: dict[str, Claims] = {}
        for folder in sorted((self.root / "workflow/papers").iterdir()):
            if (folder / "paper.yaml").exists():
                require_name(folder.name, folder)
                self.papers[folder.name], self.printed[folder.name] = load_paper(folder)
                self.claims[folder.name] = load_claims(folder / "claims.yaml")
        require_known(self.config.paper, self.papers, "config.yaml: paper")
        self.scale: Scale = self.load_scale(self.config.scale)

    @cached_property
    def scales(self) -> dict[str, Path]:
        """Return the files of scales by name.

        Raises:
            UserError: The results or work of a scale would lie in a folder that has another use, or it has a bad name.
        """
        found = {path.stem: path for path in sorted((self.root / "workflow/scales").glob("*.yaml"))}
        for name, path in found.items():
            require_name(name, path)
            if name in ("site", "corpora", "downloads"):
                raise UserError(f"{path}: rename it; results/ or work/ has a folder {name} with another use")
        return found

    def load_scale(self, name: str, where: str = "config.yaml: scale", above: tuple[str, ...] = ()) -> Scale:
        """Return a scale with the entries of its bases.

        Args:
            name: Name of the scale.
            where: Setting that names it, for messages.
            above: Scales that are based on this one.

        Raises:
            UserError: The scale is unknown, one of its bases, or has a bad key or value.
        """
        if name in above:
            raise UserError(f"{where}: the bases form a cycle, {' -> '.join((*above, name))}")
        require_known(name, self.scales, where)
        scale: Scale = load_yaml_as(Scale, file := self.scales[name])
        return scale.over(self.load_scale(scale.base, f"{file}: base", (*above, name))) if scale.base else scale

    @cached_property
    def datasets(self) -> dict[str, Path]:
        """Return the dataset files by name."""
        return {path.stem: path for path in sorted((self.root / "workflow/datasets").glob("*.yaml"))}

    @cached_property
    def dataset_records(self) -> Datasets:
        """Return the records of datasets; a bad file raises its error when its record is used."""
        return load_datasets(self.root / "workflow/datasets")

    @cached_property
    def licensed(self) -> dict[str, str]:
        """Return the folders of licensed packages, from config.yaml and from the files of the user's own datasets."""
        own = [record for record in self.dataset_records.values() if isinstance(record, OwnFolder) and record.folder]
        return {granted.package: str(granted.folder) for granted in own} | self.config.licensed

    def stand_in(self, dataset: str) -> str:
        """Return the dataset that stands in for `dataset` at this scale.

        A dataset without a stand-in stands for itself. A licensed dataset without its packages is replaced by its
        `otherwise`.

        Raises:
            UserError: A dataset is unknown.
        """
        where = f"workflow/scales/{self.config.scale}.yaml: datasets"
        require_known(dataset, {*self.scale.datasets, *self.datasets}, where)
        name = self.scale.datasets.get(dataset, dataset)
        require_known(name, self.datasets, f"{where}.{dataset}")
        record = self.dataset_records.get(name)  # a faulty record raises its error where it is used
        if isinstance(record, LicensedPackages) and record.otherwise and set(record.packages) - set(self.licensed):
            require_known(record.otherwise, self.datasets, f"{self.datasets[name]}: otherwise")
            return record.otherwise
        return name

    def partly_licensed(self) -> Iterator[str]:
        """Yield a warning for each dataset of the scale if config.yaml names only some of its packages."""
        for name in dict.fromkeys(self.scale.datasets.values()):
            record = self.dataset_records.get(name)
            if not isinstance(record, LicensedPackages):
                continue
            missing = [package for package in record.packages if package not in self.licensed]
            if 0 < len(missing) < len(record.packages):
                lacks = f"config.yaml: licensed: lacks {', '.join(missing)}"
                yield f"{lacks}, so {record.otherwise} is used instead of {name}"

    def scored_apart(self, dataset: str, measure: str) -> str | None:
        """Return the dataset if its scores have files of their own, as those of recognisers do."""
        record = self.dataset_records.get(dataset)
        return dataset if record and record.form == "speech" and measure == "scores" else None

    @cached_property
    def corpus_contents(self) -> CorpusContents:
        """Return the content hashes of corpora."""
        return CorpusContents(Path(self.config.work) / "local_files.json", self.licensed)

    @cached_property
    def floors(self) -> Floors:
        """Return the score by metric that counts as trained."""
        return load_floors(self.root / "workflow/floors.yaml")

    def noise_of(self, family: str) -> MeasuredNoise | None:
        """Return the recorded run-to-run variance of a kind of system; None if there is no record."""
        return MeasuredNoise.read_if_there(self.root / "docs/measured/noise" / f"{family}.json")

    def corpus_content(self, dataset: str) -> str:
        """Return the content hash that ends the name of a dataset's corpus folder."""
        require_known(dataset, self.datasets, "workflow/datasets")
        return self.corpus_contents.of(self.dataset_records[dataset])

    @property
    def reproduced(self) -> list[str]:
        """Return the papers that the target `all` builds."""
        return [name for name, paper in self.papers.items() if not paper.as_published]

    def locate(self, reference: str, paper: str) -> tuple[str, str]:
        """Return the names of the paper and the system that a reference means.

        Args:
            reference: `name`, or `other/name` of another paper.
            paper: Paper in which it is written.

        Raises:
            UserError: There is no such paper or system.
        """
        owner, _, name = reference.rpartition("/")
        owner = owner or paper
        where = f"workflow/papers/{paper}: system {reference!r}"
        require_known(owner, self.papers, where)
        require_known(name, self.papers[owner].systems, where)
        return owner, name

    def system_entry(self, paper: str, reference: str) -> SystemEntry:
        """Return the entry of a system that is referred to in `paper` (see `locate`)."""
        owner, name = self.locate(reference, paper)
        return self.papers[owner].systems[name]

    def _lineage(self, paper: str, system: str) -> Mapping[str, SystemEntry]:
        """Return a system's entry and those of its bases by `paper/name`, the outermost base first.

        Args:
            paper: Paper in which the system is written.
            system: `name`, or `other/name` of another paper.

        Raises:
            UserError: The bases form a cycle.
        """
        chain: dict[str, SystemEntry] = {}
        reference: str | None = system
        while reference is not None:
            paper, name = self.locate(reference, paper)
            if f"{paper}/{name}" in chain:
                raise UserError(f"workflow/papers/{paper}/paper.yaml: systems.{name}: its bases form a cycle")
            chain[f"{paper}/{name}"] = self.papers[paper].systems[name]
            reference = chain[f"{paper}/{name}"].base
        return dict(reversed(chain.items()))

    def table(self, paper: str, table: str) -> TableEntry:
        """Return the entry of a measured table."""
        return self.entry(paper, "tables", table)

    def transcript_table(self, paper: str, table: str) -> TranscriptTable:
        """Return the entry of a table of transcripts."""
        return self.entry(paper, "transcripts", table)

    def figure(self, paper: str, figure: str) -> Figure:
        """Return the entry of a figure."""
        return self.entry(paper, "figures", figure)

    def examples(self, paper: str, table: str) -> Examples:
        """Return the entry of a table of example translations."""
        return self.entry(paper, "examples", table)

    def entry(self, paper: str, section: str, name: str) -> Any:
        """Return the entry `name` of a `section` of a paper's file, e.g. of tables.

        Raises:
            UserError: There is no such paper or entry.
        """
        require_known(paper, self.papers, "--paper")
        entries = getattr(self.papers[paper], section)
        require_known(name, entries, f"workflow/papers/{paper}/paper.yaml: {section}")
        return entries[name]

    def tables_here(self, paper: str) -> list[str]:
        """Return the names of a paper's tables that can be measured at this scale."""
        tables = self.papers[paper].tables.items()
        return [name for name, table in tables if table.scales is None or self.config.scale in table.scales]


def paper_decoding(papers: Mapping[str, Paper], paper: str, name: str) -> DecodingConfig:
    """Resolve a named decoding of a paper, including the settings of its bases.

    Args:
        papers: All papers by name.
        paper: Paper that names the decoding.
        name: `name`, or `other/name` of another paper.

    Returns:
        The settings, with a language model and runs named as `paper/system@dataset` if another paper owns them.

    Raises:
        UserError: A name is unknown, the bases form a cycle, or settings contradict each other.
    """
    settings: dict[str, Any] = {}
    for (owner, _), entry in reversed(_decoding_lineage(papers, paper, name).items()):
        settings |= entry.differences
        if owner == paper:
            continue
        if reference := entry.differences.get("language_model"):
            settings["language_model"] = absolute(reference, owner)
        if references := entry.differences.get("tuned_with"):
            settings["tuned_with"] = [absolute(reference, owner) for reference in references]
    return validate(DecodingConfig, settings, f"workflow/papers/{paper}/paper.yaml: decodings.{name}")


def absolute(reference: str, paper: str) -> str:
    """Return the `reference` of a paper to a system, `system@dataset` or longer, as other papers write it."""
    return reference if "/" in reference else f"{paper}/{reference}"


def _decoding_lineage(papers: Mapping[str, Paper], paper: str, name: str) -> dict[tuple[str, str], DecodingEntry]:
    """Return a decoding and its bases by paper and name, the outermost base last."""
    chain: dict[tuple[str, str], DecodingEntry] = {}
    owner, reference = paper, name
    while reference:
        where = f"workflow/papers/{owner}/paper.yaml: decodings"
        other, _, reference = reference.rpartition("/")
        owner = other or owner
        require_known(owner, papers, where)
        named = papers[owner].decodings
        require_known(reference, named, where)
        if (owner, reference) in chain:
            raise UserError(f"{where}: the bases of {owner}/{reference} form a cycle")
        chain[owner, reference] = named[reference]
        reference = named[reference].base or ""
    return chain

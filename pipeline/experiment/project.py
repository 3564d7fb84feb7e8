"""The whole project as data: what each run, decoding and table of each paper is at the configured scale."""

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from pipeline.config import DecodingConfig, ModelConfig, RunSpec, TrainingConfig
from pipeline.data.dataset import AnyDataset, LicensedPackages, load_datasets
from pipeline.errors import UserError
from pipeline.experiment.claims import Claims, load_claims
from pipeline.experiment.decodings import paper_decoding
from pipeline.experiment.paper import Examples, Paper, SystemEntry, TableEntry, TranscriptTable, load_paper
from pipeline.experiment.references import check_references
from pipeline.experiment.scale import Scale
from pipeline.kinds.cells.shared.cell import Row
from pipeline.kinds.figures.shared.figure import Figure
from pipeline.kinds.view import PaperView
from pipeline.layout import Layout
from pipeline.models.fusion.settings import FusionConfig
from pipeline.products import Encoded, Product, RunId, Score, Trained, Transcript, Translation
from pipeline.schema import Closed, known, load_yaml, validate
from pipeline.yaml_file import parse_yaml

SECTIONS = {"model": ModelConfig, "fusion": FusionConfig, "training": TrainingConfig}
"""Settings of a run by the record that they have to be."""


MOST_SEEDS = 1000
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class Config(Closed):
    """`config.yaml`: what a user changes."""

    paper: str = Field(description="Paper whose tables `results/table<N>.csv` are")
    scale: str = Field(description="A file of workflow/scales")
    seeds: (
        Annotated[list[Seed], Field(min_length=1, max_length=MOST_SEEDS)] | Annotated[int, Field(ge=1, le=MOST_SEEDS)]
    ) = Field(description="Seeds of every run: a list, or how many (1, 2, …)")
    work: str = Field(min_length=1, description="Folder of downloads, corpora and runs; may be on a scratch disk")
    mirror: str | None = Field(default=None, description="Folder or URL tried before the public addresses")
    licensed: dict[str, Annotated[str, Field(min_length=1)]] = Field(
        default={}, description="Folders of licensed packages by name, e.g. LDC99T42; without them stand-ins are used"
    )

    @field_validator("seeds")
    @classmethod
    def each_seed_stands_once(cls, seeds: list[int] | int) -> list[int] | int:
        if isinstance(seeds, list) and len(set(seeds)) < len(seeds):
            raise ValueError("each seed may stand there once")
        return seeds

    @field_validator("mirror")
    @classmethod
    def mirror_is_a_folder_or_an_address(cls, mirror: str | None) -> str | None:
        if mirror is not None and not re.match(r"(https?|ftp|file)://.", mirror) and not is_folder(mirror):
            raise ValueError("neither a folder nor a URL (https://…); null = none")
        return mirror

    @property
    def seed_list(self) -> list[int]:
        return self.seeds if isinstance(self.seeds, list) else list(range(1, self.seeds + 1))


@dataclass(frozen=True)
class CellRun:
    """One run behind one cell of a table."""

    row: int
    cell: str
    run: RunId
    decodings: list[str]


class Project:
    """Papers, scales and datasets below `root`, resolved for one configuration."""

    def __init__(self, root: Path, config: dict[str, Any]):
        self.root = Path(root)
        self.config: Config = validate(Config, config, "config.yaml")
        self.papers: dict[str, Paper] = {}
        self.printed: dict[str, dict[str, list[Row]]] = {}
        self.claims: dict[str, Claims] = {}
        for folder in sorted((self.root / "workflow/papers").iterdir()):
            if (folder / "paper.yaml").exists():
                self.papers[folder.name], self.printed[folder.name] = load_paper(folder)
                self.claims[folder.name] = load_claims(folder / "claims.yaml")
        self.known(self.config.paper, self.papers, "config.yaml: paper")
        self.scale: Scale = self.load_scale(self.config.scale)
        self.check()

    def load_scale(self, name: str) -> Scale:
        names = {path.stem for path in (self.root / "workflow/scales").glob("*.yaml")}
        self.known(name, names, "config.yaml: scale")
        path = self.root / "workflow/scales" / f"{name}.yaml"
        return validate(Scale, load_yaml(path), str(path))

    known = staticmethod(known)

    @cached_property
    def datasets(self) -> dict[str, Path]:
        """Dataset files by name."""
        return {path.stem: path for path in sorted((self.root / "workflow/datasets").glob("*.yaml"))}

    @cached_property
    def dataset_records(self) -> dict[str, AnyDataset]:
        """What each dataset file says."""
        return load_datasets(self.root / "workflow/datasets")

    def stand_in(self, dataset: str) -> str:
        """The dataset that serves as `dataset` at this scale, or for it as long as a licensed package is not named.

        A dataset that the scale has no stand-in for stands for itself.
        """
        where = f"workflow/scales/{self.config.scale}.yaml: datasets"
        self.known(dataset, {*self.scale.datasets, *self.datasets}, where)
        name = self.scale.datasets.get(dataset, dataset)
        self.known(name, self.datasets, f"{where}.{dataset}")
        record = self.dataset_records[name]
        if isinstance(record, LicensedPackages) and set(record.packages) - set(self.config.licensed):
            self.known(record.otherwise, self.datasets, f"{self.datasets[name]}: otherwise")
            return record.otherwise
        return name

    @cached_property
    def layout(self) -> Layout:
        return Layout(Path(self.config.work), self.config.scale)

    @property
    def seeds(self) -> list[int]:
        return self.config.seed_list

    def corpus(self, dataset: str) -> Path:
        """The folder of a corpus."""
        return self.layout.corpus(dataset)

    def locate(self, reference: str, paper: str) -> tuple[str, str]:
        """(paper, system) of a reference written in `paper`: `name`, or `other/name`."""
        owner, _, name = reference.rpartition("/")
        owner = owner or paper
        where = f"workflow/papers/{paper}: system {reference!r}"
        self.known(owner, self.papers, where)
        self.known(name, self.papers[owner].systems, where)
        return owner, name

    def system_entry(self, paper: str, reference: str) -> SystemEntry:
        """The entry of a system as it is written in `paper`."""
        owner, name = self.locate(reference, paper)
        return self.papers[owner].systems[name]

    def lineage(self, paper: str, system: str) -> dict[str, SystemEntry]:
        """The system's entry and those it differs from, by `paper/name`, the outermost base first."""
        chain: dict[str, SystemEntry] = {}
        reference: str | None = system
        while reference is not None:
            paper, name = self.locate(reference, paper)
            if f"{paper}/{name}" in chain:
                raise UserError(f"workflow/papers/{paper}/paper.yaml: systems.{name}: its bases form a circle")
            chain[f"{paper}/{name}"] = self.papers[paper].systems[name]
            reference = chain[f"{paper}/{name}"].base
        return dict(reversed(chain.items()))

    def settings(self, paper: str, system: str, section: str) -> dict[str, Any]:
        """Keys of `section` as the paper has them, differences applied, before the scale's rules."""
        merged: dict[str, Any] = {}
        for entry in self.lineage(paper, system).values():
            merged |= getattr(entry, section)
        return merged

    def run_spec(self, run: RunId) -> RunSpec:
        """All that the training of `run` reads."""
        settings = {
            "paper": run.paper,
            "system": run.system,
            "dataset": run.dataset,
            "scale": self.config.scale,
            "seed": run.seed,
            "corpus": f"{self.config.work}/corpora/{run.dataset}/encoded",
            "model": self.section(run, "model").model_dump(),
            "training": self.section(run, "training").model_dump(),
        }
        if language_model := self.language_model(run):
            model = self.section(language_model, "model").model_dump()
            settings["fusion"] = self.section(run, "fusion").model_dump()
            settings["language_model"] = {"run": self.run_folder(language_model), "model": model}
        if initial := self.initial(run):
            settings["initial"] = self.run_folder(initial)
        return validate(RunSpec, settings, self.where(run))

    def where(self, run: RunId) -> str:
        return f"workflow/papers/{run.paper}/paper.yaml: systems.{run.system} at scale {self.config.scale}"

    def run_folder(self, run: RunId) -> str:
        return f"{self.config.work}/{self.config.scale}/runs/{run.folder}"

    def section(self, run: RunId, section: str) -> Closed:
        """One section of a run's settings, after this scale's rules."""
        full = self.full_section(run.paper, run.system, section)
        scaled = self.scale.scaled(section, full.model_dump(), self.lineage(run.paper, run.system))
        return validate(SECTIONS[section], scaled, f"{self.where(run)}: {section}")

    def full_section(self, paper: str, system: str, section: str) -> Closed:
        """One section of a system's settings as the paper has them."""
        where = f"workflow/papers/{paper}/paper.yaml: systems.{system}: {section}"
        return validate(SECTIONS[section], self.settings(paper, system, section), where)

    def language_model(self, run: RunId) -> RunId | None:
        """The run that is fused with this one's decoder."""
        return self.run_taken(run, "language_model")

    def initial(self, run: RunId) -> RunId | None:
        """The run whose weights this one starts from."""
        return self.run_taken(run, "initial")

    def run_taken(self, run: RunId, key: str) -> RunId | None:
        """What `language_model` or `initial` of a system names, or else of the nearest of its bases that has one."""
        found = None
        for name, entry in self.lineage(run.paper, run.system).items():
            if reference := getattr(entry, key):
                found = self.referred(reference, name.partition("/")[0], run.seed)
        return found

    def runs_taken(self, run: RunId) -> list[RunId]:
        """Runs that have to be trained before this one."""
        return [other for other in (self.language_model(run), self.initial(run)) if other]

    def referred(self, reference: str, paper: str, seed: int) -> RunId:
        """The run of `system@dataset`, written in `paper`. Raises UserError when there is none."""
        system, at, dataset = reference.partition("@")
        if not at:
            raise UserError(f"workflow/papers/{paper}/paper.yaml: {reference!r}: write system@dataset")
        return RunId(*self.locate(system, paper), self.stand_in(dataset), seed)

    def decoding_language_model(self, run: RunId, name: str) -> RunId | None:
        """The run that a decoding uses beside `run`, or in the place of the one fused with it."""
        reference = self.decoding(run.paper, run.system, name).language_model
        return self.referred(reference, run.paper, run.seed) if reference else None

    def decoding(self, paper: str, system: str, name: str) -> DecodingConfig:
        """A named decoding of the paper that owns `system`, with the system's differences, at this scale."""
        where = f"workflow/papers/{paper}/paper.yaml: decodings"
        settings = paper_decoding(self.papers, paper, name).model_dump()
        lineage = self.lineage(paper, system)
        for entry in lineage.values():
            settings |= entry.decodings.get(name, {})
        where = f"workflow/papers/{paper}/paper.yaml: systems.{system}: decodings.{name}"
        scaled = self.scale.scaled("decoding", validate(DecodingConfig, settings, where).model_dump(), lineage)
        return validate(DecodingConfig, scaled, f"{where} at scale {self.config.scale}")

    def table(self, paper: str, table: str) -> TableEntry:
        self.known(paper, self.papers, "--paper")
        self.known(table, self.papers[paper].tables, f"workflow/papers/{paper}/paper.yaml: tables")
        return self.papers[paper].tables[table]

    def tables_here(self, paper: str) -> list[str]:
        """Names of a paper's tables that can be measured at this scale."""
        tables = self.papers[paper].tables.items()
        return [name for name, table in tables if table.scales is None or self.config.scale in table.scales]

    def table_products(self, paper: str, table: str) -> list[Product]:
        """All that a table is filled in with."""
        view, cells = PaperView(self, paper), self.table(paper, table).cells.values()
        rows = self.printed[paper][table]
        return list(dict.fromkeys(product for row in rows for cell in cells for product in cell.needs(view, row)))

    def cell_runs(self, paper: str, table: str) -> list[CellRun]:
        """Every run that a cell of the table needs."""
        found: list[CellRun] = []
        for index, row in enumerate(self.printed[paper][table]):
            for name, cell in self.table(paper, table).cells.items():
                for product in cell.needs(PaperView(self, paper), row):
                    if isinstance(product, Trained):
                        found.append(CellRun(index, name, product.run, []))
                    elif isinstance(product, Score) and product.decoding not in found[-1].decodings:
                        found[-1].decodings.append(product.decoding)
        return found

    def transcript_table(self, paper: str, table: str) -> TranscriptTable:
        self.known(paper, self.papers, "--paper")
        self.known(table, self.papers[paper].transcripts, f"workflow/papers/{paper}/paper.yaml: transcripts")
        return self.papers[paper].transcripts[table]

    def transcript_products(self, paper: str, table: str) -> list[Product]:
        """The corpus whose utterances are shown, and what each system writes down of it."""
        corpus = self.stand_in(self.transcript_table(paper, table).scored_on)
        return [Encoded(corpus), *dict.fromkeys(self.transcripts(paper, table).values())]

    def transcripts(self, paper: str, table: str) -> dict[str, Transcript]:
        """What such a table shows or is chosen by, by system; of the first seed."""
        entry = self.transcript_table(paper, table)
        named = (entry.chosen_by, *(row["system"] for row in self.printed[paper][table] if row["system"]))
        runs = {system: self.runs_of(paper, system, entry.dataset)[0] for system in named}
        corpus = self.stand_in(entry.scored_on)
        return {system: Transcript(run, entry.decoding, entry.split, corpus) for system, run in runs.items()}

    def figure(self, paper: str, figure: str) -> Figure:
        self.known(paper, self.papers, "--paper")
        self.known(figure, self.papers[paper].figures, f"workflow/papers/{paper}/paper.yaml: figures")
        return self.papers[paper].figures[figure]

    def examples(self, paper: str, table: str) -> Examples:
        self.known(paper, self.papers, "--paper")
        self.known(table, self.papers[paper].examples, f"workflow/papers/{paper}/paper.yaml: examples")
        return self.papers[paper].examples[table]

    def example_runs(self, paper: str, table: str) -> dict[str, RunId]:
        """The run that translates the sentence of a table of examples, by row: that of the first seed."""
        dataset = self.examples(paper, table).dataset
        rows = [row for row in self.printed[paper][table] if row["source"] == "ours-to-run"]
        return {row["item"]: self.runs_of(paper, row["system"], dataset)[0] for row in rows}

    def example_products(self, paper: str, table: str) -> list[Product]:
        """The corpus that a sentence is chosen from, its translations, and the scores that it is chosen by."""
        entry, runs = self.examples(paper, table), self.example_runs(paper, table).values()
        found: list[Product] = [Encoded(self.stand_in(entry.dataset))]
        for run in runs:
            found += [Translation(run, entry.decoding, split) for split in entry.splits]
            found += [Score(run, "scores", entry.decoding, split) for split in entry.splits]
        return list(dict.fromkeys(found))

    def runs_of(self, paper: str, system: str, dataset: str) -> list[RunId]:
        """A system's run with each seed; `system` as it is written in `paper`, `dataset` as the papers name it."""
        owner, name = self.locate(system, paper)
        used = self.stand_in(self.settings(owner, name, "datasets").get(dataset, dataset))
        return [RunId(owner, name, used, seed) for seed in self.config.seed_list]

    def figure_products(self, paper: str, figure: str) -> list[Product]:
        """All that a figure is drawn from."""
        return list(dict.fromkeys(self.figure(paper, figure).needs(PaperView(self, paper))))

    def claim_products(self, paper: str) -> list[Product]:
        """All that the claims of a paper stand on at this scale, every run's training among it."""
        claims, view = self.claims[paper], PaperView(self, paper)
        tested = [claim for claim in claims.claims.values() if claim.is_tested(self.config.scale)]
        return list(dict.fromkeys(product for claim in tested for product in claim.needs(view, claims.scores)))

    def training_gpus(self, run: RunId) -> int:
        """GPUs that a training takes."""
        return self.scale.training_gpus(self.lineage(run.paper, run.system))

    def check(self) -> None:
        """Resolve everything once, so that a bad value anywhere stops the run before it starts.

        Raises:
            UserError: naming the paper, system or cell at fault.
        """
        check_references(self)
        dataset = next(iter(self.scale.datasets.values()))
        for paper, record in self.papers.items():
            for system in record.systems:
                self.run_spec(RunId(paper, system, dataset, 0))
            for decoding in record.decodings:
                paper_decoding(self.papers, paper, decoding)
            products = [self.table_products(paper, table) for table in self.tables_here(paper)]
            products += [self.figure_products(paper, figure) for figure in record.figures]
            products += [self.example_products(paper, table) for table in record.examples]
            products += [self.transcript_products(paper, table) for table in record.transcripts]
            for product in chain(*products, self.claim_products(paper)):
                if isinstance(product, Score | Translation | Transcript):
                    self.decoding_language_model(product.run, product.decoding)


def is_folder(name: str) -> bool:
    return "\0" not in name and Path(name).is_dir()


def load_project(root: Path, overrides: dict[str, Any] | None = None) -> Project:
    """The project at `root` with its config.yaml, some of its keys replaced."""
    path = Path(root) / "config.yaml"
    return Project(root, validate(dict[str, Any], load_yaml(path) or {}, str(path)) | (overrides or {}))


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """`KEY=VALUE`, with values as in config.yaml. Raises UserError when one has no `=`."""
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"--set {pair}: write KEY=VALUE, e.g. --set scale=small")
    return {key: parse_yaml(value, f"--set {key}") for key, value in (pair.split("=", 1) for pair in pairs)}

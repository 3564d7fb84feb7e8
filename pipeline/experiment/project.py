"""The whole project as data: what each run, decoding and table of each paper is at the configured scale."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from pipeline.config import Closed, Count, DecodingConfig, ModelConfig, RunSpec, TrainingConfig, load_yaml, validate
from pipeline.data.dataset import AnyDataset, LicensedPackages, load_dataset
from pipeline.errors import UserError
from pipeline.experiment.claim import Claim, Claims, load_claims, scores_of, systems_of, terms_of
from pipeline.experiment.figure import AttentionHeads, FigureEntry, systems_shown
from pipeline.experiment.paper import Paper, Row, SystemEntry, TableEntry, load_paper
from pipeline.experiment.scale import Scale


class Config(Closed):
    """`config.yaml`: what a user changes."""

    paper: str = Field(description="Paper whose tables `results/table<N>.csv` are")
    scale: str = Field(description="A file of workflow/scales")
    seeds: list[int] | Count = Field(description="Seeds of every run: a list, or how many (1, 2, …)")
    work: str = Field(description="Folder of downloads, corpora and runs; may be on a scratch disk")
    mirror: str | None = Field(default=None, description="Folder or URL tried before the public addresses")
    licensed: dict[str, str] = Field(
        default={}, description="Folders of licensed packages by name, e.g. LDC99T42; without them stand-ins are used"
    )

    @property
    def seed_list(self) -> list[int]:
        return self.seeds if isinstance(self.seeds, list) else list(range(1, self.seeds + 1))


@dataclass(frozen=True)
class RunId:
    """Names one training: a system of the paper that owns it, on one dataset of the scale, with one seed."""

    paper: str
    system: str
    dataset: str
    seed: int

    @property
    def folder(self) -> str:
        return f"{self.paper}/{self.system}/{self.dataset}/seed{self.seed}"


@dataclass(frozen=True)
class CellRun:
    """One run behind one cell of a table."""

    row: int
    cell: str
    run: RunId
    decodings: list[str]


@dataclass(frozen=True)
class RunFile:
    """A file in the folder of a run."""

    run: RunId
    path: str


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

    @staticmethod
    def known(name: str, names: Any, where: str) -> None:
        if name not in names:
            raise UserError(f"{where}: unknown name {name!r}; allowed: {', '.join(sorted(names))}")

    @cached_property
    def datasets(self) -> dict[str, Path]:
        """Dataset files by name."""
        return {path.stem: path for path in sorted((self.root / "workflow/datasets").glob("*.yaml"))}

    @cached_property
    def dataset_records(self) -> dict[str, AnyDataset]:
        """What each dataset file says."""
        return {name: load_dataset(path) for name, path in self.datasets.items()}

    def stand_in(self, dataset: str) -> str:
        """The dataset that serves as `dataset` at this scale, or for it as long as a licensed package is not named."""
        where = f"workflow/scales/{self.config.scale}.yaml: datasets"
        self.known(dataset, self.scale.datasets, where)
        name = self.scale.datasets[dataset]
        self.known(name, self.datasets, f"{where}.{dataset}")
        record = self.dataset_records[name]
        if isinstance(record, LicensedPackages) and set(record.packages) - set(self.config.licensed):
            self.known(record.otherwise, self.datasets, f"{self.datasets[name]}: otherwise")
            return record.otherwise
        return name

    def is_stand_in(self, dataset: str) -> bool:
        """Whether scores on a dataset of this project can't be compared with what the papers printed."""
        return self.dataset_records[dataset].stands_in_for is not None

    def locate(self, reference: str, paper: str) -> tuple[str, str]:
        """(paper, system) of a reference written in `paper`: `name`, or `other/name`."""
        owner, _, name = reference.rpartition("/")
        owner = owner or paper
        where = f"workflow/papers/{paper}: system {reference!r}"
        self.known(owner, self.papers, where)
        self.known(name, self.papers[owner].systems, where)
        return owner, name

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
        where = f"workflow/papers/{run.paper}/paper.yaml: systems.{run.system} at scale {self.config.scale}"
        sections = {}
        for section, kind in (("model", ModelConfig), ("training", TrainingConfig)):
            full = validate(kind, self.settings(run.paper, run.system, section), f"{where}: {section}")
            scaled = self.scale.scaled(section, full.model_dump(), self.lineage(run.paper, run.system))
            sections[section] = validate(kind, scaled, f"{where}: {section}")
        return RunSpec(
            paper=run.paper,
            system=run.system,
            dataset=run.dataset,
            scale=self.config.scale,
            seed=run.seed,
            corpus=f"{self.config.work}/corpora/{run.dataset}/encoded",
            **sections,
        )

    def decoding(self, paper: str, system: str, name: str) -> DecodingConfig:
        """A named decoding of the paper that owns `system`, with the system's differences, at this scale."""
        where = f"workflow/papers/{paper}/paper.yaml: decodings"
        self.known(name, self.papers[paper].decodings, where)
        settings = self.papers[paper].decodings[name].model_dump()
        lineage = self.lineage(paper, system)
        for entry in lineage.values():
            settings |= entry.decodings.get(name, {})
        scaled = self.scale.scaled("decoding", validate(DecodingConfig, settings, where).model_dump(), lineage)
        return validate(DecodingConfig, scaled, where)

    def table(self, paper: str, table: str) -> TableEntry:
        self.known(table, self.papers[paper].tables, f"workflow/papers/{paper}/paper.yaml: tables")
        return self.papers[paper].tables[table]

    def cell_runs(self, paper: str, table: str) -> list[CellRun]:
        """Every run that a cell of the table needs."""
        found = []
        for index, row in enumerate(self.printed[paper][table]):
            for name, cell in self.table(paper, table).cells.items():
                if row["source"] != "ours-to-run" or not row[cell.system]:
                    continue
                decodings = cell.decodings_of(row) if cell.kind == "score" else []
                runs = self.runs_of(paper, row[cell.system], cell.dataset)
                found += [CellRun(index, name, run, decodings) for run in runs]
        return found

    def figure(self, paper: str, figure: str) -> FigureEntry:
        self.known(figure, self.papers[paper].figures, f"workflow/papers/{paper}/paper.yaml: figures")
        return self.papers[paper].figures[figure]

    def runs_of(self, paper: str, system: str, dataset: str) -> list[RunId]:
        """A system's run with each seed; `system` as it is written in `paper`, `dataset` as the papers name it."""
        owner, name = self.locate(system, paper)
        used = self.stand_in(self.settings(owner, name, "datasets").get(dataset, dataset))
        return [RunId(owner, name, used, seed) for seed in self.config.seed_list]

    def is_tested(self, claim: Claim) -> bool:
        """Whether a claim can be tested at this scale."""
        return claim.scales is None or self.config.scale in claim.scales

    def claim_files(self, paper: str) -> list[RunFile]:
        """All that the claims of a paper stand on, every run's training among it."""
        found = {}
        for claim in filter(self.is_tested, self.claims[paper].claims.values()):
            for score in (self.claims[paper].scores[name] for name in scores_of(claim)):
                for term in terms_of(claim):
                    for run in self.runs_of(paper, term.system, score.dataset):
                        paths = ["trained.json", *map(score.path, term.decodings or [score.decoding])]
                        found |= {RunFile(run, path): None for path in paths}
            for system in systems_of(claim):
                found |= {RunFile(run, "trained.json"): None for run in self.runs_of(paper, system, claim.dataset)}
        return list(found)

    def figure_files(self, paper: str, figure: str) -> list[RunFile]:
        """All that a figure is drawn from. Attention is looked at in the run of the first seed."""
        entry = self.figure(paper, figure)
        runs = [run for system in systems_shown(entry) for run in self.runs_of(paper, system, entry.dataset)]
        if isinstance(entry, AttentionHeads):
            return [RunFile(runs[0], f"attention/{entry.decoding}/{entry.split}-{entry.rule}.json")]
        return [RunFile(run, "trained.json") for run in runs]

    def check(self) -> None:
        """Resolve everything once, so that a bad value anywhere stops the run before it starts.

        Raises:
            UserError: naming the paper, system or cell at fault.
        """
        records = (record for record in self.dataset_records.values() if isinstance(record, LicensedPackages))
        packages = {package for record in records for package in record.packages}
        for package in self.config.licensed:
            self.known(package, packages, "config.yaml: licensed")
        dataset = next(iter(self.scale.datasets.values()))
        for paper, record in self.papers.items():
            for system in record.systems:
                self.run_spec(RunId(paper, system, dataset, 0))
            for table in record.tables:
                for cell in self.cell_runs(paper, table):
                    for decoding in cell.decodings:
                        self.decoding(cell.run.paper, cell.run.system, decoding)
            for figure in record.figures:
                self.figure_files(paper, figure)
            for file in self.claim_files(paper):
                if file.path != "trained.json":
                    self.decoding(file.run.paper, file.run.system, file.path.split("/")[1])


def load_project(root: Path, overrides: dict[str, Any] | None = None) -> Project:
    """The project at `root` with its config.yaml, some of its keys replaced."""
    return Project(root, (load_yaml(Path(root) / "config.yaml") or {}) | (overrides or {}))


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """`KEY=VALUE`, with values as in config.yaml. Raises UserError when one has no `=`."""
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"--set {pair}: write KEY=VALUE, e.g. --set scale=small")
    return {key: yaml.safe_load(value) for key, value in (pair.split("=", 1) for pair in pairs)}

"""The papers as runs: what each training and decoding is at the configured scale."""

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pipeline.config import DecodingConfig, ModelConfig, RunSpec, TrainingConfig
from pipeline.core.artifacts import Encoded, RunId, Score, Transcript, Translation
from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError, shown
from pipeline.core.layout import Layout
from pipeline.core.provenance import ROOT
from pipeline.core.schema import Closed, load_yaml, refuse_unread, validate
from pipeline.models.fusion.settings import FusionConfig
from pipeline.papers import reports
from pipeline.papers.catalogue import Catalogue, paper_decoding
from pipeline.papers.content import run_content
from pipeline.papers.references import check_references
from pipeline.papers.settings import parse_settings

SECTIONS = {"model": ModelConfig, "fusion": FusionConfig, "training": TrainingConfig}
"""Settings of a run by the record that they have to be."""


class Project(Catalogue):
    """A catalogue whose every run and report was resolved once, so that a bad value stops before anything starts."""

    def __init__(self, root: Path, config: dict[str, Any]):
        """Raises UserError naming the file, key, value and what is allowed."""
        super().__init__(root, config)
        self.forget()
        check_references(self)
        self.check()

    def forget(self) -> None:
        """Begin to remember anew what a dry run asks for a dozen times: decodings, and what runs are made of."""
        self.decoding, self.run_content = cache(self._decoding), cache(self._run_content)

    @cached_property
    def layout(self) -> Layout:
        def content(run: RunId) -> str:
            return self.run_content(run)  # also what is remembered anew

        return Layout(Path(self.config.work), self.config.scale, content, self.corpus_content)

    def _run_content(self, run: RunId) -> str:
        """Of a run, what ends its folder's name."""
        data, parts = self.corpus_content(run.dataset), map(self.run_content, self.taken(run).values())
        return run_content(self.run_spec(run), data, parts)

    def settings(self, paper: str, system: str, section: str) -> dict[str, Any]:
        """Keys of `section` as the paper has them, differences applied, before the scale's rules."""
        merged: dict[str, Any] = {}
        for entry in self.lineage(paper, system).values():
            merged |= getattr(entry, section)
        return merged

    def run_spec(self, run: RunId) -> RunSpec:
        """All that the training of `run` reads; the folders that it names are just names."""
        settings = {
            "paper": run.paper,
            "system": run.system,
            "dataset": run.dataset,
            "scale": self.config.scale,
            "seed": run.seed,
            "corpus": run.dataset,
            "model": self.section(run, "model").model_dump(),
            "training": self.section(run, "training").model_dump(),
        }
        taken = self.taken(run)
        if language_model := taken.get("language_model"):
            model = self.section(language_model, "model").model_dump()
            settings["fusion"] = self.section(run, "fusion").model_dump()
            settings["language_model"] = {"run": language_model.folder, "model": model}
        elif self.settings(run.paper, run.system, "fusion"):
            raise UserError(f"{self.where(run)}: fusion: there is no language_model to be fused")
        if initial := taken.get("initial"):
            settings["initial"] = initial.folder
        spec = validate(RunSpec, settings, self.where(run))
        if spec.without_effect:
            raise UserError(f"{self.where(run)}: {spec.without_effect}")
        return spec

    def where(self, run: RunId) -> str:
        return f"workflow/papers/{run.paper}/paper.yaml: systems.{run.system} at scale {self.config.scale}"

    def run_yaml(self, run: RunId) -> dict[str, Any]:
        """The content of `run.yaml`: folders are as seen from the run's own, so that the work folder may move."""
        here = self.layout.run(run)
        at = {other.folder: self.layout.run(other) for other in self.taken(run).values()}
        at[run.dataset] = self.layout.path(Encoded(run.dataset)).parent
        return self.run_spec(run).placed(lambda name: os.path.relpath(at[name], here)).model_dump()

    def section(self, run: RunId, section: str) -> Closed:
        """One section of a run's settings, after this scale's rules."""
        full = self.full_section(run.paper, run.system, section)
        scaled = self.scaled(section, full.model_dump(), run.paper, run.system)
        if section == "training" and self.config.tensorboard:
            scaled["tensorboard"] = True
        if section == "training" and not self.config.cuda_graphs:
            scaled["cuda_graphs"] = False
        return validate(SECTIONS[section], scaled, f"{self.where(run)}: {section}")

    def scaled(self, section: str, settings: dict[str, Any], paper: str, system: str) -> dict[str, Any]:
        """`settings` of a system after this scale's rules, which leave published recipes as they are."""
        if self.papers[paper].as_published:
            return settings
        return self.scale.scaled(section, settings, self.lineage(paper, system))

    def full_section(self, paper: str, system: str, section: str) -> Closed:
        """One section of a system's settings as the paper has them."""
        where = f"workflow/papers/{paper}/paper.yaml: systems.{system}: {section}"
        settings = validate(SECTIONS[section], self.settings(paper, system, section), where)
        refuse_unread(settings, where)  # here: a scale's rules are for all systems
        return settings

    def readings(self, paper: str, system: str) -> dict[str, str]:
        """The choices of a paper's readings by which a system, as it is written there, is made. Raises UserError."""
        owner, name = self.locate(system, paper)
        lineage, found = self.lineage(owner, name), {}
        sections = [section for section in SECTIONS if self.settings(owner, name, section)]
        full = {section: self.full_section(owner, name, section).model_dump() for section in sections}
        settings = {f"{section}.{key}": value for section in full for key, value in full[section].items()}
        for key, reading in self.papers[paper].readings.items():
            if not reading.of or "/".join(self.locate(reading.of, paper)) in lineage:
                where = f"workflow/papers/{paper}/paper.yaml: readings.{key}: of {system} "
                found[key] = reading.choice_of(settings, where)
        return {key: choice for key, choice in found.items() if choice}

    def check_readings(self, paper: str) -> None:
        """Raises UserError where a default is no choice, or a choice that of no system: nothing could be compared."""
        record = self.papers[paper]
        tried = {choice for system in record.systems for choice in self.readings(paper, system).items()}
        for name, reading in record.readings.items():
            where = f"workflow/papers/{paper}/paper.yaml: readings.{name}"
            self.known(reading.default, reading.choices, f"{where}.default")
            if missing := [choice for choice in reading.choices if (name, choice) not in tried]:
                raise UserError(f"{where}.choices.{missing[0]}: no system has its settings")

    def taken(self, run: RunId) -> dict[str, RunId]:
        """Runs that have to be trained before this one: its `language_model`, which is fused with its decoder, and
        `initial`, whose weights it starts from; those of a system, or else of the nearest of its bases that has one."""
        found = {}
        for key in ("language_model", "initial"):
            for name, entry in self.lineage(run.paper, run.system).items():
                if reference := getattr(entry, key):
                    found[key] = self.referred(reference, name.partition("/")[0], run.seed)
        return found

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

    def _decoding(self, paper: str, system: str, name: str) -> DecodingConfig:
        """A named decoding of the paper that owns `system`, with the system's differences, at this scale."""
        settings = paper_decoding(self.papers, paper, name).model_dump()
        for entry in self.lineage(paper, system).values():
            settings |= entry.decodings.get(name, {})
        where = f"workflow/papers/{paper}/paper.yaml: systems.{system}: decodings.{name}"
        full = validate(DecodingConfig, settings, where)
        refuse_unread(full, where)
        scaled = self.scaled("decoding", full.model_dump(), paper, system)
        return validate(DecodingConfig, scaled, f"{where} at scale {self.config.scale}")

    def runs_of(self, paper: str, system: str, dataset: str) -> list[RunId]:
        """A system's run with each seed; `system` as it is written in `paper`, `dataset` as the papers name it."""
        owner, name = self.locate(system, paper)
        used = self.stand_in(self.settings(owner, name, "datasets").get(dataset, dataset))
        seeds = self.scale.seeds_of(f"{owner}/{name}", self.config.seed_list)
        return [RunId(owner, name, used, seed) for seed in seeds]

    def training_gpus(self, run: RunId) -> int:
        """GPUs that a training takes."""
        return self.scale.training_gpus(self.lineage(run.paper, run.system))

    def check(self) -> None:
        """Resolve everything once, so that a bad value anywhere stops the run before it starts.

        Raises:
            UserError: naming the paper, system or cell at fault.
        """
        dataset = next(name for name in self.scale.datasets.values() if name not in self.dataset_records.faults)
        for paper, record in self.papers.items():
            for system in record.systems:
                self.run_spec(RunId(paper, system, dataset, 0))
            self.check_readings(paper)
            for decoding in record.decodings:
                paper_decoding(self.papers, paper, decoding)
            products = [reports.table_products(self, paper, table) for table in self.tables_here(paper)]
            products += [reports.figure_products(self, paper, figure) for figure in record.figures]
            products += [reports.example_products(self, paper, table) for table in record.examples]
            products += [reports.transcript_products(self, paper, table) for table in record.transcripts]
            for product in chain(*products, reports.claim_products(self, paper)):
                if isinstance(product, Score | Translation | Transcript):
                    self.decoding_language_model(product.run, product.decoding)
                    self.check_weights(product.run, product.decoding)

    def check_weights(self, run: RunId, name: str) -> None:
        """Raises UserError where a language model has no weight, or one to be chosen for text: only speech has that."""
        decoding, where = self.decoding(run.paper, run.system, name), f"{self.where(run)}: decodings.{name}: "
        if decoding.unweighed:
            raise UserError(where + decoding.unweighed)
        if decoding.tuned and self.run_spec(run).model.reads != "speech":
            raise UserError(f"{where}lm_weights are for speech; set lm_weight")


LONGEST_NAME = 255  # bytes, of file systems


def is_project(folder: Path) -> bool:
    return (folder / "config.yaml").exists() and (folder / "workflow/papers").is_dir()


def require_project(folder: Path, otherwise: str) -> None:
    """Raises UserError when `folder` is no project's. otherwise: what to do but go to one."""
    if not is_project(folder):
        cd = f": `cd {shlex.quote(str(ROOT))}` goes to the one that this program is part of" if is_project(ROOT) else ""
        here = "here" if folder == Path() else f"in {folder}"
        raise UserError(f"no project {here} (no config.yaml beside workflow/){cd}, or {otherwise}")


def require_work(project: Project) -> None:
    """Raises UserError when the work folder can't be one, of those whose working directory is the project's root."""
    work = Path(project.config.work)
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in work.parts):
        raise UserError(f"work: {shown(str(work))}: a folder's name has at most {LONGEST_NAME} bytes")
    if in_its_way := [path for path in (work, *work.parents) if path.exists() and not path.is_dir()]:
        raise UserError(f"work: {in_its_way[-1]} is a file; allowed is a folder, which need not exist yet, got {work}")


def load_project(root: Path, overrides: dict[str, Any] | None = None) -> Project:
    """The project at `root` with its config.yaml, some of its keys replaced."""
    path = Path(root) / "config.yaml"
    return Project(root, validate(dict[str, Any], load_yaml(path) or {}, str(path)) | (overrides or {}))


Settings = Annotated[tuple[str, ...], Argument(name="--set", metavar="KEY=VALUE", repeated=True)]
"""Keys of config.yaml with other values."""


@dataclass(frozen=True)
class ProjectOptions:
    """Options that name a project and its settings.

    Attributes:
        root: Root folder of the project.
        settings: Override a key of config.yaml. May be given several times.
    """

    root: Path = Path()
    settings: Settings = ()

    def load(self, papers: Iterable[str] = ()) -> Project:
        """Load the project.

        Args:
            papers: Names given by `--paper`.

        Raises:
            UserError: `root` has no project, a setting is wrong, or a paper is unknown.
        """
        require_project(self.root, "name one with --root")
        project = load_project(self.root, parse_settings(self.settings))
        require_work(project)
        for paper in papers:
            project.known(paper, project.papers, "--paper")
        return project

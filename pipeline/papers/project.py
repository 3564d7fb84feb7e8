"""The papers as runs: the settings of each training and decoding at the configured scale."""

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Annotated, Any

from pipeline.config import DecodingConfig, ModelConfig, RunSpec, TrainingConfig
from pipeline.core.artifacts import Encoded, RunId
from pipeline.core.command_line import Argument
from pipeline.core.errors import UserError
from pipeline.core.layout import Layout
from pipeline.core.provenance import ROOT, code_digest
from pipeline.core.schema import Closed, refuse_unread, require_known, validate
from pipeline.core.yaml_file import load_yaml
from pipeline.models.language_model.settings import FusionConfig
from pipeline.papers.catalogue import Catalogue, paper_decoding
from pipeline.papers.config_file import Config, parse_settings, require_work
from pipeline.papers.content import run_content
from pipeline.papers.references import check_references
from pipeline.papers.reports import check_all

SECTIONS = {"model": ModelConfig, "fusion": FusionConfig, "training": TrainingConfig}
"""Record of each section of a run's settings."""


class Project(Catalogue):
    """A catalogue in which every run and report was resolved once, so that bad values are found before anything starts.

    Args:
        root: Root folder of the project.
        config: Content of config.yaml.

    Attributes:
        untrained: Warnings about systems that no target trains.

    Raises:
        UserError: A file has a bad key or value; the message names file, key, value and what is allowed.
    """

    def __init__(self, root: Path, config: dict[str, Any]):
        super().__init__(root, config)
        self.clear_caches()
        self.untrained = check_references(self)
        check_all(self)

    def clear_caches(self) -> None:
        """Create empty caches of settings and content hashes, which a dry run needs a dozen times."""
        self.lineage, self.run_content = cache(self._lineage), cache(self._run_content)
        self.decoding, self.run_spec = cache(self._decoding), cache(self._run_spec)
        self.runs_of = cache(self._runs_of)
        self.paper_decoding = cache(partial(paper_decoding, self.papers))

    @cached_property
    def layout(self) -> Layout:
        """Return the paths of all files at this scale."""

        def content(run: RunId) -> str:
            # seeds of a system share settings, data and weight sources; looked up late: `clear_caches` replaces it
            return self.run_content(replace(run, seed=0))

        return Layout(Path(self.config.work), self.config.scale, content, self.corpus_content)

    def _run_content(self, run: RunId) -> str:
        """Return the content hash that ends the name of a run's folder; it does not depend on the seed."""
        data, parts = self.corpus_content(run.dataset), map(self.run_content, self.weight_sources(run).values())
        return run_content(self.run_spec(run), data, parts)

    def settings(self, paper: str, system: str, section: str) -> dict[str, Any]:
        """Return one section of a system merged with its bases, before the scale's rules and without defaults."""
        merged: dict[str, Any] = {}
        for entry in self.lineage(paper, system).values():
            merged |= getattr(entry, section)
        return merged

    def _run_spec(self, run: RunId) -> RunSpec:
        """Return the settings of a training; folders are given by name, not by path.

        Raises:
            UserError: A setting is wrong, missing or ignored by the model.
        """
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
        taken = self.weight_sources(run)
        if language_model := taken.get("language_model"):
            model = self.section(language_model, "model").model_dump()
            settings["fusion"] = self.section(run, "fusion").model_dump()
            settings["language_model"] = {"run": language_model.folder, "model": model}
        elif self.settings(run.paper, run.system, "fusion"):
            raise UserError(f"{self.where(run)}: fusion needs a language model: set language_model")
        if initial := taken.get("initial"):
            settings["initial"] = initial.folder
        spec = validate(RunSpec, settings, self.where(run))
        if spec.ignored_setting:
            raise UserError(f"{self.where(run)}: {spec.ignored_setting}")
        return spec

    def where(self, run: RunId) -> str:
        """Return the place of a run's settings, for messages."""
        return f"workflow/papers/{run.paper}/paper.yaml: systems.{run.system} at scale {self.config.scale}"

    def run_yaml(self, run: RunId) -> dict[str, Any]:
        """Return the content of `run.yaml`. Its folders are relative, so that the work folder can be moved."""
        here = self.layout.run(run)
        at = {other.folder: self.layout.run(other) for other in self.weight_sources(run).values()}
        at[run.dataset] = self.layout.path(Encoded(run.dataset)).parent
        return self.run_spec(run).map_folders(lambda name: os.path.relpath(at[name], here)).model_dump()

    def section(self, run: RunId, section: str) -> Closed:
        """Return one section of a run's settings after this scale's rules."""
        full = self.full_section(run.paper, run.system, section)
        scaled = self.scaled(section, full.model_dump(), run.paper, run.system)
        if section == "training" and self.config.tensorboard:
            scaled["tensorboard"] = True
        if section == "training" and not self.config.cuda_graphs:
            scaled["cuda_graphs"] = False
        return validate(SECTIONS[section], scaled, f"{self.where(run)}: {section}")

    def scaled(self, section: str, settings: dict[str, Any], paper: str, system: str) -> dict[str, Any]:
        """Return settings after this scale's rules; published recipes stay unchanged.

        Args:
            section: model, fusion, training or decoding.
            settings: Settings by key.
            paper: Paper that owns the system.
            system: Name of the system.
        """
        if self.papers[paper].as_published:
            return settings
        return self.scale.scaled(section, settings, self.lineage(paper, system))

    def full_section(self, paper: str, system: str, section: str) -> Closed:
        """Return one section of a system's settings at printed size.

        Raises:
            UserError: A setting is wrong, or another setting makes it meaningless.
        """
        where = f"workflow/papers/{paper}/paper.yaml: systems.{system}: {section}"
        settings = validate(SECTIONS[section], self.settings(paper, system, section), where)
        refuse_unread(settings, where)  # checked before the scale's rules, which apply to all systems
        return settings

    def weight_sources(self, run: RunId) -> dict[str, RunId]:
        """Return the runs whose weights a run loads, by setting: `language_model` and `initial`.

        A system without the setting inherits it from its nearest base.
        """
        found = {}
        for key in ("language_model", "initial"):
            for name, entry in self.lineage(run.paper, run.system).items():
                if reference := getattr(entry, key):
                    found[key] = self.resolve_reference(reference, name.partition("/")[0], run.seed)
        return found

    def origin(self, run: RunId) -> RunId:
        """Return the training that `run` continues, directly or through others; else `run` itself."""
        initial = self.weight_sources(run).get("initial")
        return self.origin(initial) if initial else run

    def resolve_reference(self, reference: str, paper: str, seed: int) -> RunId:
        """Return the run with a `seed` of a `reference` to `system@dataset` or `paper/system@dataset`.

        Raises:
            UserError: The reference has no `@`, or the system or dataset is unknown.
        """
        system, at, dataset = reference.partition("@")
        if not at:
            raise UserError(f"workflow/papers/{paper}/paper.yaml: {reference!r}: write system@dataset")
        return RunId(*self.locate(system, paper), self.stand_in(dataset), seed)

    def decoding_language_model(self, run: RunId, name: str) -> RunId | None:
        """Return the language model that a decoding uses with a run; None if it uses none."""
        reference = self.decoding(run.paper, run.system, name).language_model
        return self.resolve_reference(reference, run.paper, run.seed) if reference else None

    def tuning_runs(self, run: RunId, name: str) -> list[RunId]:
        """Return the further runs whose development sets choose the weights of the decoding `name`, theirs too."""
        references = self.decoding(run.paper, run.system, name).tuned_with
        return [self.resolve_reference(reference, run.paper, run.seed) for reference in references]

    def _decoding(self, paper: str, system: str, name: str) -> DecodingConfig:
        """Resolve a named decoding for a system at this scale: that of its base if nothing changes it."""
        systems = self.papers[paper].systems
        own = systems[system]
        if own.base in systems and name not in own.decodings and f"{paper}/{system}" not in self.scale.systems:
            return self.decoding(paper, own.base, name)
        settings = self.paper_decoding(paper, name).model_dump()
        for entry in self.lineage(paper, system).values():
            settings |= entry.decodings.get(name, {})
        where = f"workflow/papers/{paper}/paper.yaml: systems.{system}: decodings.{name}"
        full = validate(DecodingConfig, settings, where)
        refuse_unread(full, where)
        scaled = self.scaled("decoding", plain := full.model_dump(), paper, system)
        if scaled == plain:
            return full
        return validate(DecodingConfig, scaled, f"{where} at scale {self.config.scale}")

    def _runs_of(self, paper: str, system: str, dataset: str) -> list[RunId]:
        """Return a system's runs, one per seed."""
        owner, name = self.locate(system, paper)
        used = self.stand_in(self.settings(owner, name, "datasets").get(dataset, dataset))
        seeds = self.scale.seeds_of(f"{owner}/{name}", self.config.seed_list)
        return [RunId(owner, name, used, seed) for seed in seeds]

    def training_gpus(self, run: RunId) -> int:
        """Return the number of GPUs of a training."""
        return self.scale.training_gpus(self.lineage(run.paper, run.system))


def is_project(folder: Path) -> bool:
    """Return whether a folder is the root of a project."""
    return (folder / "config.yaml").exists() and (folder / "workflow/papers").is_dir()


def require_project(folder: Path, otherwise: str) -> None:
    """Check that a `folder` is the root of a project; the message has `otherwise` as a further remedy.

    The environment of another clone runs that clone's code, which may name other runs than the code in the folder. An
    image of this clone has the same code.

    Raises:
        UserError: The folder has no project, or code that is not the running one.
    """
    here = "here" if folder == Path() else f"in {folder}"
    if not is_project(folder):
        cd = f": run `cd {shlex.quote(str(ROOT))}` to work in the project of this program" if is_project(ROOT) else ""
        raise UserError(f"no project {here} (no config.yaml beside workflow/){cd}, or {otherwise}")
    code = folder / "pipeline"
    if code.is_dir() and not code.samefile(ROOT / "pipeline") and code_digest(code) != code_digest():
        module = ", or write `python -m` before `reprise`" if folder == Path() else ""
        raise UserError(
            f"this program has the code of {ROOT}, and the project {here} has its own; activate the environment of "
            f"that project{module}"
        )


def load_project(root: Path, overrides: dict[str, Any] | None = None) -> Project:
    """Return the project at `root`, with every reference and value checked; `overrides` replace config.yaml's.

    Raises:
        UserError: A file has a bad key or value.
    """
    path = Path(root) / "config.yaml"
    return Project(root, validate(dict[str, Any], load_yaml(path) or {}, str(path)) | (overrides or {}))


Settings = Annotated[
    tuple[str, ...], Argument(name="--set", metavar="KEY=VALUE", repeated=True, keys=tuple(Config.model_fields))
]
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
        """Return the project, with every reference and value checked.

        Raises:
            UserError: `root` has no project, a setting is wrong, or a paper is unknown.
        """
        require_project(self.root, "name one with --root")
        project = load_project(self.root, parse_settings(self.settings))
        require_work(project.config, project.root)
        for paper in papers:
            require_known(paper, project.papers, "--paper")
        return project

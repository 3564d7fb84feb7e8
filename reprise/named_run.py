"""The run that somebody names: by its folder, or as `paper/system/dataset/seed`; and how it is decoded. No torch."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config import DecodingConfig, RunSpec, load_run, run_folder_above
from pipeline.core.advice import REPAIR
from pipeline.core.artifacts import Averaged, RunId, Score, Trained, Tuned
from pipeline.core.errors import UserError
from pipeline.core.layout import RUN_FILE, WEIGHTS_FILE, path_in_run
from pipeline.core.provenance import ROOT
from pipeline.core.records.decoding import Tuned as TunedWeights
from pipeline.core.schema import known, refuse_unread, validate
from pipeline.core.yaml_file import parse_yaml
from pipeline.data.dataset import AnyDataset
from pipeline.papers.project import Project, is_project, load_project, require_project, require_work
from pipeline.papers.reports import table_products
from pipeline.workflow.targets import command

PACKED_FILE = "model.json"
"""What a packed model (portable.py) is known by."""
SHORT = {"beam": "beam_size", "alpha": "length_penalty"}
"""Other names of settings, as in `--decoding beam=8,alpha=1.0`."""


@dataclass(frozen=True)
class FoundRun:
    """A trained run and the project that describes it."""

    folder: Path
    spec: RunSpec
    project: Project

    @property
    def id(self) -> RunId:
        return RunId(self.spec.paper, self.spec.system, self.spec.dataset, self.spec.seed)

    @property
    def decodings(self) -> Iterable[str]:
        """Those of its paper, by name."""
        known(self.spec.paper, self.project.papers, f"{self.folder / RUN_FILE}: paper")
        return self.project.papers[self.spec.paper].decodings

    @property
    def dataset(self) -> AnyDataset:
        """What it was trained on."""
        records = self.project.dataset_records
        known(self.spec.dataset, records, f"{self.folder / RUN_FILE}: dataset")
        return records[self.spec.dataset]


@dataclass(frozen=True)
class NamedDecoding:
    """How a run is decoded, and with which weights."""

    name: str
    config: DecodingConfig
    weights: Path
    language_model: Path | None


def find_project(settings: dict[str, Any]) -> Project:
    """The project of the working folder, with some keys of config.yaml replaced."""
    project = load_project(find_root(), settings)
    require_work(project)
    return project


def find_root() -> Path:
    """The working folder: what a project makes lies below it. Raises UserError when it is no project's."""
    require_project(Path(), "name the folder of a run or model")
    return Path()


def find_run(name: str, settings: dict[str, Any]) -> FoundRun:
    """Raises UserError when there is no such run, with the names that there are, or when it is not trained yet."""
    if folder := run_folder_above(Path(name)):
        spec = load_run(folder / RUN_FILE)
        root = ROOT if is_project(ROOT) and not is_project(Path()) else find_root()  # for what its paper says
        return FoundRun(folder, spec, load_project(root, {"scale": spec.scale} | settings))
    if (Path(name) / PACKED_FILE).exists():
        raise UserError(f"{name}: is a packed model; this takes a run, beside its data and scores")
    if Path(name).is_file() and Path(name).suffix == ".tar":
        raise UserError(f"{name}: is an archive; `reprise unpack {shlex.quote(name)}` first, then name the folder")
    if Path(name).exists():
        raise UserError(f"{name}: no {RUN_FILE} in it or above it; name the folder of a run or of a packed model")
    project = find_project(settings)
    run = named(project, name)
    folder = project.layout.run(run)
    if not (folder / WEIGHTS_FILE).exists():
        trained = project.layout.path(Trained(run))
        if trained.exists():  # by which Snakemake takes it for done
            raise UserError(f"{folder / WEIGHTS_FILE}: was made, but is there no more; {REPAIR}")
        raise UserError(
            f"{name}: not trained at scale {project.config.scale} (no {folder / WEIGHTS_FILE}); "
            f"`{command(project, trained)}` trains it, `--set scale=…` looks at another scale"
            f"{of_other_settings(project, run.paper, run.system, run.dataset, run.seed)}"
        )
    return FoundRun(folder, load_run(folder / RUN_FILE), project)


def named(project: Project, name: str) -> RunId:
    """The run `paper/system[/dataset[/seed]]`: the only dataset that the system is trained on, the first seed.

    Raises:
        UserError: a name is unknown, with what there is and the nearest spelling, or several datasets would do.
    """
    paper, system, dataset, seed = [*name.strip("/").split("/", 3), "", "", ""][:4]
    if not system:
        raise UserError(f"{name}: neither a folder nor paper/system/dataset/seed, such as attention/base/wmt14-en-de/1")
    known(paper, project.papers, f"{name}: no such folder; paper")
    known(system, project.papers[paper].systems, f"{name}: systems of {paper}")
    number = seed.removeprefix("seed") or str(project.config.seed_list[0])
    if not number.isdecimal():
        raise UserError(f"{name}: the seed is a number, got {seed!r}")
    used = {one: one for one in project.datasets}
    used |= {one: project.runs_of(paper, system, one)[0].dataset for one in project.scale.datasets}
    faults = project.dataset_records.faults
    runs = {one: RunId(paper, system, at, int(number)) for one, at in used.items() if at not in faults}
    if fault := faults.get(used.get(dataset, "")):
        raise fault
    if dataset:
        known(dataset, runs, f"{name}: datasets of scale {project.config.scale}")
        return runs[dataset]
    trained = {one: run for one, run in runs.items() if (project.layout.run(run) / WEIGHTS_FILE).exists()}
    if not trained:
        seeds = f"{number} (configured: {', '.join(map(str, project.config.seed_list))})"
        there, makes = f"at scale {project.config.scale} with seed {seeds}", command(project, paper)
        unread = f"; not looked for, as their files are faulty: {', '.join(faults)}" if faults else ""
        others = of_other_settings(project, paper, system, "*", number)
        raise UserError(
            f"{name}: trained on nothing {there}; `{makes}` does it, --set scale=… looks elsewhere{unread}{others}"
        )
    if len(set(trained.values())) != 1:
        where = f"with seed {number} it is trained on: {', '.join(sorted(trained))}"
        raise UserError(f"{name}: name a dataset too, {paper}/{system}/DATASET; {where}")
    return next(iter(trained.values()))


def of_other_settings(project: Project, paper: str, system: str, dataset: str, seed: int | str) -> str:
    """A hint at the newest trained run of that name whose settings or data are not today's."""
    found = project.layout.runs.glob(f"{paper}/{system}/{dataset}/seed{seed}-*/{WEIGHTS_FILE}")
    if not (weights := sorted(found, key=lambda path: path.stat().st_mtime)):
        return ""
    return f"; of other settings or data there is {weights[-1].parent}, to be named by its folder"


def decoding_of(found: FoundRun, text: str) -> NamedDecoding:
    """The decoding `NAME`, `KEY=VALUE,…` that differ from the usual one, or `NAME,KEY=VALUE,…`.

    Raises:
        UserError: there is no such name or key, or weights that it needs have not been made.
    """
    spec, project = found.spec, found.project
    name, changes = split_decoding(text)
    known(name := name or usual_decoding(found), found.decodings, "--decoding")
    config = changed(project.decoding(spec.paper, spec.system, name), changes)
    if config.tuned:
        chosen = TunedWeights.read(made(found, Tuned(found.id, name)))
        weights = {"lm_weight": chosen.lm_weight, "word_bonus": chosen.word_bonus, "lm_weights": []}
        config = config.model_copy(update=weights)
    averages = config.reads_checkpoints
    path = made(found, Averaged(found.id, name)) if averages else found.folder / WEIGHTS_FILE
    other = project.decoding_language_model(found.id, name)
    return NamedDecoding(name, config, path, project.layout.run(other) if other else None)


def split_decoding(text: str) -> tuple[str, dict[str, str]]:
    """The name, or nothing, and the settings that differ, of `NAME,KEY=VALUE,…`. Raises UserError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    name = parts.pop(0) if parts and "=" not in parts[0] else ""
    if wrong := [part for part in parts if "=" not in part]:
        raise UserError(f"--decoding: {wrong[0]!r}: write NAME, KEY=VALUE, or NAME,KEY=VALUE, such as beam=8,alpha=1.0")
    pairs = [part.split("=", 1) for part in parts]
    keys = [SHORT.get(key, key) for key, _ in pairs]
    if double := [key for key in keys if keys.count(key) > 1]:
        raise UserError(f"--decoding: {double[0]}: is given {keys.count(double[0])} times")
    return name, dict(pairs)


def changed(config: DecodingConfig, changes: dict[str, str]) -> DecodingConfig:
    """Raises UserError for an unknown key or a bad value, or where other weights would be needed."""
    if not changes:
        return config
    given = {SHORT.get(key, key): parse_yaml(value, "--decoding") for key, value in changes.items()}
    if unfit := {"average_last", "averaged", "language_model", "lm_weights"} & set(given):
        raise UserError(f"--decoding: {unfit.pop()}: needs other weights; name a decoding of paper.yaml that has it")
    settings = validate(DecodingConfig, config.model_dump() | given, "--decoding")
    refuse_unread(settings, "--decoding", given)
    if settings.unweighed and {"ngram_order", "lm_weight", "language_model_use"} & set(given):
        raise UserError(f"--decoding: {settings.unweighed}")
    return settings


def made(found: FoundRun, product: Averaged | Tuned) -> Path:
    """A product's file in the folder of the run, wherever that lies. Raises UserError when it is not made."""
    path = found.folder / path_in_run(product)
    if not path.exists():
        making = command(found.project, found.project.layout.target(product))
        raise UserError(f"{path}: not made yet; `{making}` makes it, or choose another --decoding")
    return path


def usual_decoding(found: FoundRun) -> str:
    """That by which a table scores the run's output, if possible without another model beside it."""
    project, run = found.project, found.id
    papers = dict.fromkeys([run.paper, *project.papers])
    tables = ((paper, table) for paper in papers for table in project.tables_here(paper))
    products = (product for paper, table in tables for product in table_products(project, paper, table))
    scored = (one for one in products if isinstance(one, Score) and one.measure != "perplexities")
    names = [one.decoding for one in scored if (one.run.paper, one.run.system) == (run.paper, run.system)]
    plain = (one for one in names if not project.decoding(run.paper, run.system, one).reads_language_model)
    return next(plain, next(iter(names or found.decodings)))

"""Find runs and projects by the names that users give them. Loads no torch."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from pipeline.cluster.state import newest_checkpoint
from pipeline.config import RunSpec, load_run, run_folder_above
from pipeline.core.artifacts import Artifact, Averaged, DecodingArtifact, RunId, Score
from pipeline.core.errors import UserError
from pipeline.core.layout import DONE_FILE, RUN_FILE, WEIGHTS_FILE, path_in_run
from pipeline.core.provenance import ROOT
from pipeline.core.schema import require_known
from pipeline.data.dataset import AnyDataset
from pipeline.papers.config_file import require_work
from pipeline.papers.project import Project, is_project, load_project, require_project
from pipeline.workflow.graph import Graph, runs_in
from pipeline.workflow.targets import reprise_command, snakemake_command

PACKED_FILE = "model.json"
"""The file that marks the folder of a packed model (portable.py)."""


@dataclass(frozen=True)
class FoundRun:
    """A trained run and the project that describes it."""

    folder: Path
    spec: RunSpec
    project: Project

    @property
    def id(self) -> RunId:
        """Return the identity of the run."""
        return RunId(self.spec.paper, self.spec.system, self.spec.dataset, self.spec.seed)

    @property
    def decodings(self) -> Iterable[str]:
        """Return the names of the decodings of its paper.

        Raises:
            UserError: The project no longer has its paper or its system.
        """
        require_known(self.spec.paper, self.project.papers, f"{self.folder / RUN_FILE}: paper")
        paper = self.project.papers[self.spec.paper]
        where = f"{self.folder / RUN_FILE}: system, which workflow/papers/{self.spec.paper}/paper.yaml lacks"
        require_known(self.spec.system, paper.systems, where)
        return paper.decodings

    @property
    def dataset(self) -> AnyDataset:
        """Return the dataset that it was trained on."""
        records = self.project.dataset_records
        require_known(self.spec.dataset, records, f"{self.folder / RUN_FILE}: dataset")
        return records[self.spec.dataset]

    def measured_by(self, artifact: DecodingArtifact | Score) -> str:
        """Return how to measure what no report reads: a command with its effect, or another choice."""
        folder = shlex.quote(str(self.folder))
        if not isinstance(artifact, Score):
            return f"`reprise score {folder}` scores it"
        run, split, decoding = self.id, artifact.split, artifact.decoding
        if artifact.measure == "scores":
            return f"`reprise score {folder} --split {split} --decoding {decoding}` prints it"
        if artifact.measure != "perplexities":
            return "choose another --metric"
        is_averaged = self.project.decoding(run.paper, run.system, decoding).reads_checkpoints
        weights = path_in_run(Averaged(run, decoding)) if is_averaged else WEIGHTS_FILE
        dataset = shlex.quote(str(self.project.datasets[self.dataset.name]))
        options = f"--weights {folder}/{weights} --dataset {dataset} --split {split}"
        return f"`reprise perplexity {options} --out FILE.json` measures it; compare two such files"

    def missing(self, artifact: DecodingArtifact | Score) -> str:
        """Explain that an artifact of the run does not exist, and give the command that makes only this artifact.

        Returns:
            A message with the state: "trained, not decoded" or "decoded, not scored".
        """
        path = self.folder / path_in_run(artifact)
        current = self.project.layout.path(artifact)
        target = self.project.layout.target(artifact)
        is_decoded = isinstance(artifact, Score) and outputs_exist(self.folder, artifact)
        state = "decoded, not scored" if is_decoded else "trained, not decoded"
        if current.resolve() != path.resolve():
            return f"{path}: {state}; no current report reads it; {self.measured_by(artifact)}"
        if isinstance(artifact, Score) and artifact not in read_by_reports(self.project, self.project.papers):
            return f"{path}: {state}; no report reads it; {self.instead_of(artifact)}"
        what = "scores it" if is_decoded else "decodes and scores it" if isinstance(artifact, Score) else "makes it"
        return f"{path}: {state}; `{snakemake_command(self.project, target)}` {what}"

    def instead_of(self, artifact: Score) -> str:
        """Return what a user can do instead of reading a score that no report reads."""
        others = (replace(artifact, split=split) for split in self.dataset.split_names)
        scored = [other.split for other in others if (self.folder / path_in_run(other)).exists()]
        if scored:
            return f"`--split {scored[0]}` is scored"
        return self.measured_by(artifact)


def outputs_exist(folder: Path, score: Score) -> bool:
    """Return whether a run has the outputs that a score counts."""
    outputs = [*folder.glob(f"translations/{score.decoding}/{score.split}.tok")]
    return bool(outputs or [*folder.glob(f"transcripts/{score.decoding}/{score.split}@*.txt")])


def find_project(settings: dict[str, Any], otherwise: str = "change to another folder") -> Project:
    """Load the project of the working folder, with some `settings` replaced; `otherwise` as for `find_root`."""
    project = load_project(find_root(otherwise), settings)
    require_work(project.config, project.root)
    return project


def find_root(otherwise: str = "change to another folder") -> Path:
    """Return the working folder.

    Args:
        otherwise: What to do if it is not the folder of a project.

    Raises:
        UserError: It is not the folder of a project.
    """
    require_project(Path(), otherwise)
    return Path()


def find_run(name: str, settings: dict[str, Any], needs_weights: bool = True) -> FoundRun:
    """Return a trained run, with its project at the run's scale.

    Args:
        name: `paper/system[/dataset[/seed]]`, or the folder of a run.
        settings: Keys that replace those of config.yaml.
        needs_weights: Refuse a finished run whose weights were removed.

    Raises:
        UserError: There is no such run, or it is not trained; the message names the nearest run or the command.
    """
    if folder := run_folder_above(Path(name)):
        spec = load_run(folder / RUN_FILE)
        root = ROOT if is_project(ROOT) and not is_project(Path()) else find_root()  # describes its paper
        project = load_project(root, {"scale": spec.scale} | settings)
        if needs_weights or not (folder / DONE_FILE).exists():
            require_weights(project, name, folder)
        return FoundRun(folder, spec, project)
    if (Path(name) / PACKED_FILE).exists():
        raise UserError(f"{name}: is a packed model; name a run, which has its data and scores")
    if Path(name).is_file() and Path(name).suffix == ".tar":
        raise UserError(f"{name}: is an archive; run `reprise unpack {shlex.quote(name)}`, then name the folder")
    if Path(name).exists():
        raise UserError(f"{name}: has no {RUN_FILE}; name the folder of a run or of a packed model")
    project = find_project(settings, "name the folder of a run or model")
    run = resolve_run(project, name)
    folder = project.layout.run(run)
    if needs_weights or not (folder / DONE_FILE).exists():
        hint = other_settings_hint(project, run.paper, run.system, run.dataset, run.seed)
        require_weights(project, name, folder, hint)
    return FoundRun(folder, load_run(folder / RUN_FILE), project)


def require_weights(project: Project, name: str, folder: Path, hint: str = "") -> None:
    """Check that a run in `folder`, which the user called `name`, has its final weights; `hint` may end the message.

    Raises:
        UserError: It has none. The message says whether they are lost, not trained to the end or not trained.
    """
    done, weights = folder / DONE_FILE, folder / WEIGHTS_FILE
    if weights.exists():
        return
    if done.exists():  # Snakemake takes the run for finished
        repair = f"`reprise train --run {shlex.quote(str(folder))}`"
        raise UserError(f"{weights}: weights are missing; {repair} writes them again, if possible from a checkpoint")
    train = f"`{snakemake_command(project, done)}`"
    where = f"at scale {project.config.scale} (no {weights})"
    if step := newest_checkpoint(folder):
        raise UserError(f"{name}: not trained to the end {where}; {train} resumes it from step {step}")
    raise UserError(f"{name}: not trained {where}; {train} trains it, `--set scale=…` uses another scale{hint}")


def resolve_run(project: Project, name: str) -> RunId:
    """Resolve `paper/system[/dataset[/seed]]` to a run.

    Args:
        project: The project.
        name: The name; by default the only trained dataset and the first seed are used.

    Returns:
        The identity of the run, which may be untrained if the dataset is named.

    Raises:
        UserError: A name is unknown, several datasets fit, or the system is not trained on any.
    """
    paper, system, dataset, seed = [*name.strip("/").split("/", 3), "", "", ""][:4]
    if not system or name.startswith(("/", ".", "~")) or name.endswith(".tar"):
        archive = "; for a packed model, first `reprise unpack`" if name.endswith(".tar") else ""
        example = "such as attention/base/wmt14-en-de/1"
        raise UserError(f"{name}: neither a folder nor paper/system/dataset/seed, {example}{archive}")
    require_known(paper, project.papers, f"{name}: no such folder; paper")
    require_known(system, project.papers[paper].systems, f"{name}: systems of {paper}")
    number = seed.removeprefix("seed") or str(project.config.seed_list[0])
    if not number.isdecimal():
        raise UserError(f"{name}: the seed is a number, got {seed!r}")
    used = {name: name for name in project.datasets}
    used |= {name: project.runs_of(paper, system, name)[0].dataset for name in project.scale.datasets}
    faults = project.dataset_records.faults
    runs = {name: RunId(paper, system, at, int(number)) for name, at in used.items() if at not in faults}
    if fault := faults.get(used.get(dataset, "")):
        raise fault
    if dataset:
        if dataset in runs:
            return runs[dataset]
        reported = {run.dataset for run in reported_runs(project, paper, system)}
        usual = [name for name, run in runs.items() if run.dataset in reported]
        require_known(dataset, usual or runs, f"{name}: datasets of {system} at scale {project.config.scale}")
    trained = {name: run for name, run in runs.items() if (project.layout.run(run) / WEIGHTS_FILE).exists()}
    if not trained:
        raise_not_trained(project, name, paper, system, int(number))
    if len(set(trained.values())) != 1:
        where = f"with seed {number} it is trained on: {', '.join(sorted(trained))}"
        raise UserError(f"{name}: name a dataset too, {paper}/{system}/DATASET; {where}")
    return next(iter(trained.values()))


def read_by_reports(project: Project, papers: Iterable[str]) -> list[Artifact]:
    """Return the artifacts that reports of some papers read; no target of Snakemake makes another score."""
    graph = Graph(project)
    return graph.closure(graph.readable(papers))


def reported_runs(project: Project, paper: str, system: str) -> list[RunId]:
    """Return the runs of a system that reports of its paper read."""
    runs = runs_in(read_by_reports(project, [paper]))
    return [run for run in runs if (run.paper, run.system) == (paper, system)]


def raise_not_trained(project: Project, name: str, paper: str, system: str, seed: int) -> NoReturn:
    """Raise the error that run `name` (`seed`) isn't trained, with the narrowest command that trains one.

    Raises:
        UserError: Always.
        AssertionError: The run has weights.
    """
    faults = project.dataset_records.faults
    runs = [replace(run, seed=seed) for run in reported_runs(project, paper, system)]
    where = f"at scale {project.config.scale} with seed {seed}"
    unread = f"; skipped, as their files are faulty: {', '.join(faults)}" if faults else ""
    hint = other_settings_hint(project, paper, system, "*", seed)
    if not runs:
        raise UserError(f"{name}: not trained {where}, and no report reads it; name a dataset too{unread}{hint}")
    lost = [run for run in runs if (project.layout.run(run) / DONE_FILE).exists()]
    require_weights(project, name, project.layout.run([*lost, *runs][0]), f"{unread}{hint}")
    raise AssertionError("the caller found no weights")


def other_settings_hint(project: Project, paper: str, system: str, dataset: str, seed: int) -> str:
    """Return the end of a message, the newest trained run of that name with other settings; `*` is any dataset."""
    found = project.layout.runs.glob(f"{paper}/{system}/{dataset}/seed{seed}-*/{WEIGHTS_FILE}")
    if not (weights := sorted(found, key=lambda path: path.stat().st_mtime)):
        return ""
    return f"; with other settings or data, {weights[-1].parent} is trained: name this folder to use it"


def unchecked_scales(project: Project, command: str) -> Iterator[str]:
    """Yield a line for each other scale that has runs, for a `command` that reads the project's scale only."""
    for scale in project.scales:
        runs = replace(project.layout, scale=scale).runs
        if scale != project.config.scale and any(runs.glob("*/*/*/seed*")):
            advice = reprise_command(project, command, scale=scale)
            yield f"scale {scale} also has runs in {project.layout.work}, which were not checked: run `{advice}`"

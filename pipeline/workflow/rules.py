"""Functions that the Snakemake rules call: inputs of a job, parameters of its command line, and priorities."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from pipeline.config import RunSpec
from pipeline.core import artifacts
from pipeline.core.errors import UserError
from pipeline.core.layout import SITE
from pipeline.models.settings import BatchShape, Reads
from pipeline.papers.project import Project
from pipeline.training.specification import run_flops
from pipeline.workflow.graph import Graph, datasets_in
from pipeline.workflow.plans import Plans
from pipeline.workflow.targets import names_of_rules, only_at, other_scales, unknown_target

Wildcards = Mapping[str, str]
Kind = TypeVar("Kind", bound=artifacts.Artifact)


class RuleFunctions:
    """Functions of a job's wildcards, for the Snakemake rules of one project.

    Attributes:
        refusal: Why a target was refused; empty if none was.
    """

    def __init__(self, project: Project):
        self.project, self.layout = project, project.layout
        self.graph = Graph(project)
        self.plans = Plans(self.graph)
        self.refusal = ""

    def artifact(self, kind: type[Kind], wildcards: Wildcards) -> Kind:
        """Return the artifact that wildcards name.

        Raises:
            UserError: The digest in the wildcards is outdated, because settings or data changed.
        """
        artifact = artifact_of(kind, wildcards)
        path = str(self.layout.path(artifact))
        if (content := wildcards.get("content")) and f"-{content}/" not in path:
            raise UserError(f"-{content}/: outdated, because settings or data changed; request {path}")
        return artifact

    def inputs(self, kind: type[artifacts.Artifact], wildcards: Wildcards) -> list[str]:
        """Return the files that the job for an artifact reads; empty for a report that no paper describes.

        Raises:
            UserError: The table exists at other scales only, or `artifact` or `Plans.inputs` raised it.
        """
        artifact = self.artifact(kind, wildcards)
        if isinstance(artifact, artifacts.Table) and (
            other := other_scales(self.project, artifact.paper, artifact.table)
        ):
            raise UserError(f"{artifact.table} {only_at(other)}")
        return [str(path) for path in self.plans.inputs(artifact)] if self.graph.has(artifact) else []

    def datasets(self, kind: type[artifacts.Artifact], wildcards: Wildcards) -> list[str]:
        """Return the dataset files that `Outputs` or `Scores` of a decoding depend on."""
        return self.plans.datasets(self.artifact(kind, wildcards))

    def corpus_folder(self, wildcards: Wildcards) -> str:
        """Return the folder of a corpus."""
        return str(self.layout.corpus(wildcards["dataset"]))

    def record(self, wildcards: Any) -> Any:
        """Return the settings of a dataset."""
        return self.project.dataset_records[wildcards.dataset]

    def corpus_threads(self, wildcards: Any) -> int:
        """Return the threads of a job that prepares text or makes features; trees and characters take one process."""
        is_shared = self.record(wildcards).form in ("sentences", "speech")
        return self.project.scale.resources["prepare"].threads if is_shared else 1

    def section(self, wildcards: Any) -> str:
        """Return the section of paper.yaml that describes a table: tables, examples or transcripts."""
        record = self.project.papers[wildcards.paper]
        return next(name for name in ("tables", "examples", "transcripts") if wildcards.table in getattr(record, name))

    def printed(self, wildcards: Wildcards) -> str:
        """Return the CSV of printed numbers or texts of a table."""
        paper = wildcards["paper"]
        return f"workflow/papers/{paper}/{self.project.papers[paper].printed_tables[wildcards['table']].printed}"

    def run(self, wildcards: Wildcards) -> artifacts.RunId:
        """Return the run that wildcards name."""
        return self.artifact(artifacts.Trained, wildcards).run

    def run_folder(self, wildcards: Wildcards) -> str:
        """Return the folder of a run."""
        return str(self.layout.run(self.run(wildcards)))

    def specification(self, wildcards: Wildcards) -> str:
        """Return all settings of a run as JSON; only a change of this text makes Snakemake train it again."""
        return json.dumps(self.project.run_yaml(self.run(wildcards)))

    def decodings(self, wildcards: Wildcards) -> str:
        """Return how a training job decodes its run at its end, as JSON."""
        return self.plans.training(self.run(wildcards)).model_dump_json(exclude_defaults=True)

    def decoding_plan(self, wildcards: Wildcards) -> str:
        """Return the plan of a decoding as JSON; a change rebuilds its outputs, but no training."""
        return self.plans.decoding(self.artifact(artifacts.Outputs, wildcards)).model_dump_json(exclude_defaults=True)

    def scoring_plan(self, wildcards: Wildcards) -> str:
        """Return the plan of the scores of a decoding as JSON."""
        return self.plans.scoring(self.artifact(artifacts.Scores, wildcards)).model_dump_json(exclude_defaults=True)

    def training_gpus(self, wildcards: Wildcards) -> int:
        """Return the number of GPUs that a training requests."""
        return self.project.training_gpus(self.run(wildcards))

    def report(self, section: str, wildcards: Wildcards) -> str:
        """Return all settings that one report depends on as JSON; a change rebuilds the report.

        Args:
            section: Section of paper.yaml: tables, figures, examples, transcripts or layer_costs.
            wildcards: Values of a job's wildcards.
        """
        record = self.project.papers[wildcards["paper"]]
        name = wildcards.get("table") or wildcards["figure"]
        notes = [note.model_dump() for note in [*record.readings.values(), *record.deviations]]
        entry = getattr(record, section)[name].model_dump()
        return json.dumps([entry, notes, self.project.scale.model_dump(), self.project.config.seed_list])

    def claims(self, wildcards: Wildcards) -> str:
        """Return the claims of a paper and the seeds as JSON."""
        claims = self.project.claims[wildcards["paper"]].model_dump()
        return json.dumps([claims, self.project.config.seed_list])

    def printed_systems(self, wildcards: Wildcards) -> str:
        """Return what a paper's model sizes depend on as JSON: its tables, and the systems of all papers."""
        systems = [record.model_dump(include={"systems"}) for record in self.project.papers.values()]
        tables = self.project.papers[wildcards["paper"]].model_dump(include={"tables"})
        return json.dumps([systems, tables, self.project.printed[wildcards["paper"]]])

    def reports(self, papers: Iterable[str]) -> list[str]:
        """Return every table, claim and figure of some papers."""
        return [str(self.layout.path(report)) for report in self.graph.reports(papers)]

    def fetched(self) -> list[str]:
        """Return the raw files of the datasets that are downloaded for the reproduced papers."""
        records = self.project.dataset_records
        named = datasets_in(self.graph.closure(self.graph.reports(self.project.reproduced)))
        return [
            str(self.layout.path(artifacts.Raw(name)))
            for name in named
            if records[name].collector not in (None, "grammar")
        ]

    def unknown_targets(self) -> str:
        """Return a regular expression of targets that no rule builds.

        They are unknown names, unknown results, and runs in folders with an outdated digest.
        """
        tops = self.layout.results / self.project.config.paper, self.layout.results.parent
        every = [*self.graph.reports(self.project.papers), *self.graph.on_request]
        made = {
            self.layout.path(report).with_suffix(""): "csv|md|svg|png"
            if isinstance(report, artifacts.Figure | artifacts.LayerTable)
            else "csv|md"
            for report in every
        }
        made |= {tops[1] / path.name: endings for path, endings in made.items() if path.parent == tops[0]}
        made[SITE.with_suffix("")] = "html"
        known = "|".join(rf"{re.escape(str(path))}\.(?:{endings})" for path, endings in made.items())
        word = r"[^/.]+(?:\.(?:csv|md|svg|png|html))?"
        return rf"(?!(?:{known})$)(?:results/.+|{word}|{re.escape(str(self.layout.runs))}/.+/seed\d+/.+)"

    def refuse_target(self, wildcards: Wildcards) -> list[str]:
        """Refuse a target that no other rule builds; Snakemake tries this rule last.

        Raises:
            UserError: Always. The message suggests what may have been meant.
        """
        target = wildcards["target"]
        names = {"all", *self.project.papers, *names_of_rules(self.project.root)} - {"unknown"}
        self.refusal = unknown_target(self.project, target, names) or (
            f"{target}: no rule makes it; results are files such as results/table2.csv, and results/site/index.html"
        )
        raise UserError(self.refusal)


def artifact_of(kind: type[Kind], values: Mapping[str, str]) -> Kind:
    """Return the artifact of a `kind` that wildcards name; missing fields keep their defaults.

    Raises:
        KeyError: A field without a default is missing.
    """
    made: dict[str, Any] = {field.name: values[field.name] for field in fields(kind) if field.name in values}
    if issubclass(kind, artifacts.RunArtifact):
        seed = values["seed"]
        number = int(seed) if seed.isdecimal() else cast(int, seed)
        made["run"] = artifacts.RunId(values["paper"], values["system"], values["dataset"], number)
    return kind(**made)


USUAL_SHAPES: dict[Reads, tuple[int, int, int]] = {
    "parallel": (8000, 25, 25),
    "speech": (32, 300, 40),
    "text": (32, 0, 40),
}
"""Assumed target vocabulary and positions per side of a sentence, because a corpus is unknown before it is built."""


def training_flops(spec: RunSpec) -> float:
    """Estimate the FLOPs of a training, by which the longest trainings start first."""
    training, (symbols, src, tgt) = spec.training, USUAL_SHAPES[spec.model.reads]
    rows = training.sentences_per_update or (training.tokens_per_update or 0) / tgt
    return training.max_steps * run_flops(spec, BatchShape(symbols, rows * src, rows * tgt, src, tgt))

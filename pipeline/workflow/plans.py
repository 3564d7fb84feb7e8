"""List the outputs and scores that reports need of each run and decoding, and plan the jobs that make them."""

from collections.abc import Iterable
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, cast

from pipeline.core import artifacts
from pipeline.core.errors import UserError
from pipeline.core.layout import path_in_run
from pipeline.data.dataset import SplitName, sources_of
from pipeline.outputs.plan import DecodingPlan, PlannedOutput, PlannedScore, PlannedTraining, ScoringPlan
from pipeline.workflow.graph import Graph, datasets_in, flatten

KINDS: dict[type[artifacts.Artifact], str] = {
    artifacts.Averaged: "averaged",
    artifacts.Gates: "gates",
    artifacts.Alignments: "alignments",
    artifacts.AttentionMaps: "attention",
    artifacts.Score: "perplexity",
    artifacts.Tuned: "tuned",
    artifacts.Translation: "translation",
    artifacts.Parse: "parse",
    artifacts.Transcript: "transcript",
}
"""Kinds of outputs in the order in which they are made; those whose search may alter the model come last."""
DESCRIBED = ("gates", "perplexity")
"""Kinds that read the description of test sets in the dataset file."""
SCORED: dict[str, Any] = {"translation": "text", "parse": "trees", "transcript": "speech"}
"""Kind of score of an output, by the output's name in the graph."""


class Plans:
    """The jobs `decode` and `score` of a project."""

    def __init__(self, graph: Graph):
        self.graph, self.project, self.layout = graph, graph.project, graph.project.layout

    @cached_property
    def wanted(self) -> dict[artifacts.Artifact, list[artifacts.RunArtifact]]:
        """List the artifacts of each manifest that the reports of all papers need.

        An artifact that only a table on request needs joins the manifest of other reports once its data is here. Before
        that, no other report may wait for this data, nor may another table on request.
        """
        usual = self.by_manifest(self.graph.reports(self.project.papers))
        requested = [self.by_manifest([table]) for table in self.graph.on_request]
        found = {manifest: [*made] for manifest, made in usual.items()}
        for made in requested:
            for manifest, artifacts_of_table in made.items():
                joined = found.setdefault(manifest, [])
                first, *more = (self.data_of(other[manifest]) for other in (usual, *requested) if manifest in other)
                awaited = first.intersection(*more)  # needed by every table that reads this manifest
                joined += [
                    artifact
                    for artifact in artifacts_of_table
                    if artifact not in joined and all(self.is_here(name) for name in self.data_of([artifact]) - awaited)
                ]
        return found

    def by_manifest(self, reports: Iterable[artifacts.Report]) -> dict[artifacts.Artifact, list[artifacts.RunArtifact]]:
        """List the artifacts that reports need by manifest, without reports whose dataset files can't be read."""
        found: dict[artifacts.Artifact, list[artifacts.RunArtifact]] = {}
        for artifact in self.graph.closure(self.graph.without_faults(list(reports))):
            manifest = artifacts.manifest_of(artifact)
            if manifest is not artifact and isinstance(artifact, artifacts.RunArtifact):
                found.setdefault(manifest, []).append(artifact)
        return found

    def data_of(self, made: Iterable[artifacts.Artifact]) -> set[str]:
        """Return the datasets that artifacts are made from."""
        return {*datasets_in(self.graph.closure([*made]))}

    def is_here(self, dataset: str) -> bool:
        """Return whether a corpus is here, or every file that it is made from."""
        if any(self.layout.path(kind(dataset)).exists() for kind in (artifacts.Raw, artifacts.Encoded)):
            return True
        from pipeline.data.fetch.download import local_paths  # imports an HTTP client

        downloads, mirror = self.layout.downloads, self.project.config.mirror
        sources = sources_of(self.project.dataset_records[dataset])
        return all(local_paths(name, source, downloads, mirror) for name, source in sources.items())

    def artifacts_of(self, manifest: artifacts.Artifact) -> list[artifacts.RunArtifact]:
        """Return the artifacts of a manifest, in the order in which they are made."""
        found, order = self.wanted.get(manifest, []), list(KINDS)
        return sorted(found, key=lambda artifact: order.index(type(artifact)))

    def decoding(self, manifest: artifacts.Outputs) -> DecodingPlan:
        """Return how a run is decoded.

        Raises:
            UserError: The decoding is unknown.
        """
        run, name = manifest.run, manifest.decoding
        outputs = [self.output(artifact) for artifact in self.artifacts_of(manifest)]
        if name == artifacts.TRAINING:
            return DecodingPlan(name=name, outputs=outputs)
        settings = self.project.decoding(run.paper, run.system, name).model_dump(exclude={"tuned_with"})
        other = self.project.decoding_language_model(run, name)
        folder = str(self.layout.run(other)) if other else None
        others = [str(self.layout.path(artifacts.Tuned(run, name))) for run in self.project.tuning_runs(run, name)]
        return DecodingPlan(name=name, settings=settings, language_model=folder, tuned_with=others, outputs=outputs)

    def output(self, artifact: artifacts.RunArtifact) -> PlannedOutput:
        """Return one output of a decoding's plan."""
        kind, elsewhere = KINDS[type(artifact)], getattr(artifact, "scored_on", None)
        fields = {"kind": kind, "file": path_in_run(artifact)}
        fields |= {name: getattr(artifact, name) for name in ("split", "choice") if hasattr(artifact, name)}
        if elsewhere:
            fields["corpus"] = self.encoded(elsewhere)
        if kind in DESCRIBED:
            fields["dataset"] = self.dataset_file(elsewhere or artifact.run.dataset)
        return PlannedOutput.model_validate(fields)

    def training(self, run: artifacts.RunId) -> PlannedTraining:
        """Return how a run is decoded at the end of its training job."""
        manifests = [
            artifact for artifact in self.wanted if isinstance(artifact, artifacts.Outputs) and artifact.run == run
        ]
        threads = self.project.scale.resources["decode"].threads
        return PlannedTraining(threads=threads, plans=[self.decoding(manifest) for manifest in manifests])

    def scoring(self, manifest: artifacts.Scores) -> ScoringPlan:
        """Return how a decoding is scored."""
        scores = [
            self.score(artifact) for artifact in self.artifacts_of(manifest) if isinstance(artifact, artifacts.Score)
        ]
        return ScoringPlan(name=manifest.decoding, scores=scores)

    def score(self, artifact: artifacts.Score) -> PlannedScore:
        """Return one score of a decoding's plan."""
        inputs = self.graph.inputs(artifact)
        name, kind = next((name, kind) for name, kind in SCORED.items() if name in inputs)
        output = inputs[name]
        assert isinstance(output, artifacts.RunArtifact)
        dataset = artifact.scored_on or artifact.run.dataset
        run = self.layout.run(artifact.run)
        trees = [str(self.layout.trees(artifact, words).relative_to(run)) for words in ("", ".aligned")]
        fields: dict[str, Any] = {"trees": trees} if kind == "trees" else {}
        return PlannedScore(
            kind="phenomena" if artifact.measure == "phenomena" else kind,
            file=path_in_run(artifact),
            output=path_in_run(output),
            split=cast(SplitName, artifact.split),
            dataset=self.dataset_file(dataset),
            corpus=str(self.layout.corpus(dataset)),
            **fields,
        )

    def inputs(self, artifact: artifacts.Artifact) -> list[Path]:
        """Return the files that the job for an artifact reads.

        Raises:
            UserError: No report needs this decoding, or a dataset file is faulty.
        """
        made: Iterable[artifacts.Artifact] = [artifact]
        if isinstance(artifact, artifacts.Outputs | artifacts.Scores):
            made = self.artifacts_of(artifact)
            if not made:
                raise UserError(f"{self.layout.path(artifact)}: no report needs this decoding of this run")
        read = chain.from_iterable(flatten(self.graph.inputs(artifact)) for artifact in made)
        if artifact in self.graph.on_request:  # so that missing data is reported before anything runs
            read = chain(read, map(artifacts.Encoded, sorted(self.data_of([artifact]))))
        declared = dict.fromkeys(map(artifacts.manifest_of, read))
        return [self.layout.path(other) for other in declared if other != artifact]

    def datasets(self, manifest: artifacts.Artifact) -> list[str]:
        """Return the dataset files that the outputs or scores of a manifest are measured by."""
        match manifest:
            case artifacts.Outputs():
                found = [output.dataset for output in self.decoding(manifest).outputs if output.dataset]
            case artifacts.Scores():
                found = [score.dataset for score in self.scoring(manifest).scores]
            case _:
                found = []
        return list(dict.fromkeys(found))

    def encoded(self, dataset: str) -> str:
        """Return the folder of an encoded corpus."""
        return str(self.layout.path(artifacts.Encoded(dataset)).parent)

    @staticmethod
    def dataset_file(dataset: str) -> str:
        """Return the file that describes a dataset."""
        return f"workflow/datasets/{dataset}.yaml"

"""The dependencies of all artifacts, which rules, `plan`, `check_data` and `free` read.

`inputs` returns direct inputs. `closure` follows averaged weights, language models, runs that others start from, and
corpora that are only scored on, down to the raw data.
"""

import logging
from collections.abc import Iterable, Mapping
from functools import cached_property

from pipeline.core import artifacts
from pipeline.core.errors import UserError
from pipeline.papers import reports
from pipeline.papers.project import Project

log = logging.getLogger(__name__)

Inputs = Mapping[str, artifacts.Artifact | list[artifacts.Artifact]]


class Graph:
    """The papers of a project as a directed acyclic graph of artifacts.

    Attributes:
        logged: Faults of datasets that have been logged.
    """

    def __init__(self, project: Project):
        self.project = project
        self.logged: list[UserError] = []

    def reports(self, papers: Iterable[str]) -> list[artifacts.Report]:
        """Return every table, claims page and figure of some papers at this scale."""
        found: list[artifacts.Report] = []
        for paper in papers:
            record = self.project.papers[paper]
            found += [
                artifacts.Table(paper, name)
                for name in self.project.tables_here(paper)
                if not record.tables[name].on_request
            ]
            found += [artifacts.ExampleTable(paper, name) for name in record.examples]
            found += [artifacts.TranscriptTable(paper, name) for name in record.transcripts]
            found += [artifacts.LayerTable(paper, name) for name in record.layer_costs]
            found += [artifacts.Figure(paper, name) for name in record.figures]
            claims = self.project.claims[paper].claims.values()
            found += (
                [artifacts.Claims(paper)] if any(claim.is_tested(self.project.config.scale) for claim in claims) else []
            )
        return found

    @cached_property
    def on_request(self) -> list[artifacts.Table]:
        """List the tables of this scale that are made only if their files are asked for."""
        return [
            artifacts.Table(paper, name)
            for paper, record in self.project.papers.items()
            for name in self.project.tables_here(paper)
            if record.tables[name].on_request
        ]

    def readable(self, papers: Iterable[str]) -> list[artifacts.Report]:
        """Return the reports of some papers that read no faulty dataset file; faults are logged."""
        return self.without_faults(self.reports(papers))

    def without_faults(self, reports: list[artifacts.Report]) -> list[artifacts.Report]:
        """Return the reports that read no faulty dataset file; each fault is logged once."""
        faults = self.project.dataset_records.faults
        if not faults:
            return reports
        found: list[artifacts.Report] = []
        for report in reports:
            try:
                self.closure([report])
                found.append(report)
            except UserError as error:
                if error not in faults.values():
                    raise
                if error not in self.logged:
                    log.warning("%s; artifacts that need this dataset are left out", error)
                self.logged.append(error)
        return found

    def has(self, report: artifacts.Artifact) -> bool:
        """Return whether a paper describes this report; other artifacts always exist."""
        match report:
            case artifacts.ExampleTable(paper, name):
                return name in self.project.papers[paper].examples
            case artifacts.TranscriptTable(paper, name):
                return name in self.project.papers[paper].transcripts
            case artifacts.LayerTable(paper, name):
                return name in self.project.papers[paper].layer_costs
            case artifacts.Table(paper, name):
                return name in self.project.papers[paper].tables
        return True

    def closure(self, targets: Iterable[artifacts.Artifact]) -> list[artifacts.Artifact]:
        """Return `targets` and everything they depend on, each once, dependencies first."""
        found: dict[artifacts.Artifact, None] = {}

        def visit(artifact: artifacts.Artifact) -> None:
            if artifact in found:
                return
            for needed in flatten(self.inputs(artifact)):
                visit(needed)
            found[artifact] = None

        for target in targets:
            visit(target)
        return list(found)

    def inputs(self, artifact: artifacts.Artifact) -> Inputs:
        """Return the direct inputs of an artifact, by the name that its rule gives them.

        Raises:
            UserError: The artifact refers to something that does not exist.
        """
        match artifact:
            case artifacts.DatasetArtifact():
                return self.corpus_inputs(artifact)
            case artifacts.RunArtifact():
                return self.run_inputs(artifact)
            case artifacts.LayerTable():
                return {"times": artifacts.LayerTimes()}
            case artifacts.ExampleTable(paper, table):
                return {"measured": reports.example_artifacts(self.project, paper, table)}
            case artifacts.TranscriptTable(paper, table):
                return {"measured": reports.transcript_artifacts(self.project, paper, table)}
            case artifacts.Table(paper, table):
                return {"measured": reports.table_artifacts(self.project, paper, table)}
            case artifacts.Figure(paper, figure):
                return {"measured": reports.figure_artifacts(self.project, paper, figure)}
            case artifacts.Claims(paper):
                return {"measured": reports.claim_artifacts(self.project, paper)}
        return {}

    def corpus_inputs(self, artifact: artifacts.DatasetArtifact) -> Inputs:
        """Return the inputs of an artifact of a dataset."""
        record = self.project.dataset_records[artifact.dataset]
        raw: dict[str, artifacts.Artifact | list[artifacts.Artifact]] = (
            {"raw": artifacts.Raw(artifact.dataset)} if record.collector else {}
        )
        prepared = {"prepared": artifacts.Prepared(artifact.dataset)}
        if isinstance(artifact, artifacts.Raw):
            return {}
        if isinstance(artifact, artifacts.Spoken):
            return raw
        match record.form:
            case "speech":  # features are prepared and encoded in one stage
                return {"spoken": artifacts.Spoken(artifact.dataset)} if record.is_read_aloud else raw
            case "characters":
                return raw
        match artifact:
            case artifacts.Vocabulary():
                return prepared
            case artifacts.Encoded():
                return {**prepared, "vocabulary": artifacts.Vocabulary(artifact.dataset)}
        return raw

    def run_inputs(self, artifact: artifacts.RunArtifact) -> Inputs:
        """Return the inputs of an artifact of a run.

        Raises:
            TypeError: The graph has no such artifact of a run.
        """
        run = artifact.run
        corpus = {"corpus": artifacts.Encoded(run.dataset)}
        match artifact:
            case artifacts.Trained():
                sources: list[artifacts.Artifact] = [
                    artifacts.Trained(other) for other in self.project.weight_sources(run).values()
                ]
                return {**corpus, "others": sources}
            case artifacts.Averaged():
                return {"trained": artifacts.Trained(run)}
            case artifacts.Gates() | artifacts.Alignments():
                return {"trained": artifacts.Trained(run), **corpus}
            case artifacts.Translation(_, decoding, _) | artifacts.Parse(_, decoding, _):
                return {**self.decoding_inputs(run, decoding), **corpus}
            case artifacts.Tuned(_, decoding):
                others: list[artifacts.Artifact] = [
                    artifacts.Tuned(other, decoding) for other in self.project.tuning_runs(run, decoding)
                ]
                return {**self.decoding_inputs(run, decoding), **corpus, "tuned_with": others}
            case artifacts.AttentionMaps(_, decoding, _, _):
                return {"weights": self.weights(run, decoding), **corpus}
            case artifacts.Transcript(_, decoding, _, scored_on):
                tuned = self.project.decoding(run.paper, run.system, decoding).tuned
                chosen = {"tuned": artifacts.Tuned(run, decoding)} if tuned else {}
                return {**self.decoding_inputs(run, decoding), **chosen, "scored_on": artifacts.Encoded(scored_on)}
            case artifacts.Score():
                return self.score_inputs(artifact)
        raise TypeError(f"no inputs are known for {artifact!r}")

    def score_inputs(self, score: artifacts.Score) -> Inputs:
        """Return the inputs of a score, which depend on what is scored."""
        run, decoding, split = score.run, score.decoding, score.split
        corpus = {"corpus": artifacts.Encoded(run.dataset)}
        other_corpus = {"scored_on": artifacts.Encoded(score.scored_on)} if score.scored_on else {}
        if score.measure == "perplexities":
            return {"weights": self.weights(run, decoding), **corpus, **other_corpus}
        if score.scored_on:
            return {"transcript": artifacts.Transcript(run, decoding, split, score.scored_on), **other_corpus}
        if self.project.dataset_records[run.dataset].form == "trees":
            return {"parse": artifacts.Parse(run, decoding, split), "prepared": artifacts.Prepared(run.dataset)}
        translation = {"translation": artifacts.Translation(run, decoding, split)}
        prepared: dict[str, artifacts.Artifact] = {"prepared": artifacts.Prepared(run.dataset)}
        if score.measure == "phenomena":  # the expected phenomena are beside the raw text
            return translation | corpus | prepared | {"raw": artifacts.Raw(run.dataset)}
        return translation | prepared

    def weights(self, run: artifacts.RunId, decoding: str) -> artifacts.Artifact:
        """Return the weights that a decoding loads: averaged checkpoints, or the final weights of the training."""
        averages = self.project.decoding(run.paper, run.system, decoding).reads_checkpoints
        return artifacts.Averaged(run, decoding) if averages else artifacts.Trained(run)

    def decoding_inputs(self, run: artifacts.RunId, decoding: str) -> Inputs:
        """Return the weights of a decoding, and its external language model if there is one."""
        other = self.project.decoding_language_model(run, decoding)
        language_model = {"language_model": artifacts.Trained(other)} if other else {}
        return {"weights": self.weights(run, decoding), **language_model}


def flatten(inputs: Inputs) -> list[artifacts.Artifact]:
    """Return all artifacts of some inputs."""
    return [item for value in inputs.values() for item in (value if isinstance(value, list) else [value])]


def runs_in(found: Iterable[artifacts.Artifact]) -> list[artifacts.RunId]:
    """Return the runs that are trained for some artifacts, in order."""
    return list(dict.fromkeys(artifact.run for artifact in found if isinstance(artifact, artifacts.Trained)))


def datasets_in(found: Iterable[artifacts.Artifact]) -> list[str]:
    """Return the datasets that some artifacts are made from, in alphabetical order."""
    return sorted({artifact.dataset for artifact in found if isinstance(artifact, artifacts.DatasetArtifact)})

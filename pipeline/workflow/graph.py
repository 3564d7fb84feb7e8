"""The dependencies of all products, which rules, `plan`, `check_data` and `free` read.

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

Inputs = Mapping[str, artifacts.Product | list[artifacts.Product]]


class Graph:
    """The papers of a project as a directed acyclic graph of products.

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
                    log.warning("%s; products that need this dataset are left out", error)
                self.logged.append(error)
        return found

    def has(self, report: artifacts.Product) -> bool:
        """Return whether a paper describes this report; other products always exist."""
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

    def closure(self, targets: Iterable[artifacts.Product]) -> list[artifacts.Product]:
        """Return `targets` and everything they depend on, each once, dependencies first."""
        found: dict[artifacts.Product, None] = {}

        def visit(product: artifacts.Product) -> None:
            if product in found:
                return
            for needed in flatten(self.inputs(product)):
                visit(needed)
            found[product] = None

        for target in targets:
            visit(target)
        return list(found)

    def inputs(self, product: artifacts.Product) -> Inputs:
        """Return the direct inputs of a product, by the name that its rule gives them.

        Raises:
            UserError: The product refers to something that does not exist.
        """
        match product:
            case artifacts.DatasetArtifact():
                return self.corpus_inputs(product)
            case artifacts.RunArtifact():
                return self.run_inputs(product)
            case artifacts.LayerTable():
                return {"times": artifacts.LayerTimes()}
            case artifacts.ExampleTable(paper, table):
                return {"measured": reports.example_products(self.project, paper, table)}
            case artifacts.TranscriptTable(paper, table):
                return {"measured": reports.transcript_products(self.project, paper, table)}
            case artifacts.Table(paper, table):
                return {"measured": reports.table_products(self.project, paper, table)}
            case artifacts.Figure(paper, figure):
                return {"measured": reports.figure_products(self.project, paper, figure)}
            case artifacts.Claims(paper):
                return {"measured": reports.claim_products(self.project, paper)}
        return {}

    def corpus_inputs(self, product: artifacts.DatasetArtifact) -> Inputs:
        """Return the inputs of a product of a dataset."""
        record = self.project.dataset_records[product.dataset]
        raw: dict[str, artifacts.Product | list[artifacts.Product]] = (
            {"raw": artifacts.Raw(product.dataset)} if record.collector else {}
        )
        prepared = {"prepared": artifacts.Prepared(product.dataset)}
        if isinstance(product, artifacts.Raw):
            return {}
        if isinstance(product, artifacts.Spoken):
            return raw
        match record.form:
            case "speech":  # features are prepared and encoded in one stage
                return {"spoken": artifacts.Spoken(product.dataset)} if record.is_read_aloud else raw
            case "characters":
                return raw
        match product:
            case artifacts.Vocabulary():
                return prepared
            case artifacts.Encoded():
                return {**prepared, "vocabulary": artifacts.Vocabulary(product.dataset)}
        return raw

    def run_inputs(self, product: artifacts.RunArtifact) -> Inputs:
        """Return the inputs of a product of a run.

        Raises:
            TypeError: The graph has no such product of a run.
        """
        run = product.run
        corpus = {"corpus": artifacts.Encoded(run.dataset)}
        match product:
            case artifacts.Trained():
                sources: list[artifacts.Product] = [
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
                others: list[artifacts.Product] = [
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
                return self.score_inputs(product)
        raise TypeError(f"no inputs are known for {product!r}")

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
        prepared: dict[str, artifacts.Product] = {"prepared": artifacts.Prepared(run.dataset)}
        if score.measure == "phenomena":  # the expected phenomena are beside the raw text
            return translation | corpus | prepared | {"raw": artifacts.Raw(run.dataset)}
        return translation | prepared

    def weights(self, run: artifacts.RunId, decoding: str) -> artifacts.Product:
        """Return the weights that a decoding loads: averaged checkpoints, or the final weights of the training."""
        averages = self.project.decoding(run.paper, run.system, decoding).reads_checkpoints
        return artifacts.Averaged(run, decoding) if averages else artifacts.Trained(run)

    def decoding_inputs(self, run: artifacts.RunId, decoding: str) -> Inputs:
        """Return the weights of a decoding, and its external language model if there is one."""
        other = self.project.decoding_language_model(run, decoding)
        language_model = {"language_model": artifacts.Trained(other)} if other else {}
        return {"weights": self.weights(run, decoding), **language_model}


def flatten(inputs: Inputs) -> list[artifacts.Product]:
    """Return all products of some inputs."""
    return [item for value in inputs.values() for item in (value if isinstance(value, list) else [value])]


def runs_in(found: Iterable[artifacts.Product]) -> list[artifacts.RunId]:
    """Return the runs that are trained for some products, in order."""
    return list(dict.fromkeys(product.run for product in found if isinstance(product, artifacts.Trained)))


def datasets_in(found: Iterable[artifacts.Product]) -> list[str]:
    """Return the datasets that some products are made from, in alphabetical order."""
    return sorted({product.dataset for product in found if isinstance(product, artifacts.DatasetArtifact)})

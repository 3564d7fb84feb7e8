"""The dependencies of all products, which rules, `plan`, `check_data` and `free` read.

`inputs` returns direct inputs. `closure` follows averaged weights, language models, runs that others start from, and
corpora that are only scored on, down to the raw data.
"""

import logging
from collections.abc import Iterable, Mapping
from functools import cached_property

from pipeline.core import artifacts as products
from pipeline.core.errors import UserError
from pipeline.papers import reports
from pipeline.papers.project import Project

log = logging.getLogger(__name__)

Inputs = Mapping[str, products.Product | list[products.Product]]


class Graph:
    """The papers of a project as a directed acyclic graph of products.

    Attributes:
        logged: Faults of datasets that have been logged.
    """

    def __init__(self, project: Project):
        self.project = project
        self.logged: list[UserError] = []

    def reports(self, papers: Iterable[str]) -> list[products.Report]:
        """Return every table, claims page and figure of some papers at this scale."""
        found: list[products.Report] = []
        for paper in papers:
            record = self.project.papers[paper]
            found += [
                products.Table(paper, name)
                for name in self.project.tables_here(paper)
                if not record.tables[name].on_request
            ]
            found += [products.ExampleTable(paper, name) for name in record.examples]
            found += [products.TranscriptTable(paper, name) for name in record.transcripts]
            found += [products.LayerTable(paper, name) for name in record.layer_costs]
            found += [products.Figure(paper, name) for name in record.figures]
            claims = self.project.claims[paper].claims.values()
            found += (
                [products.Claims(paper)] if any(claim.is_tested(self.project.config.scale) for claim in claims) else []
            )
        return found

    @cached_property
    def on_request(self) -> list[products.Table]:
        """List the tables of this scale that are made only if their files are asked for."""
        return [
            products.Table(paper, name)
            for paper, record in self.project.papers.items()
            for name in self.project.tables_here(paper)
            if record.tables[name].on_request
        ]

    def readable(self, papers: Iterable[str]) -> list[products.Report]:
        """Return the reports of some papers that read no faulty dataset file; faults are logged."""
        return self.without_faults(self.reports(papers))

    def without_faults(self, reports: list[products.Report]) -> list[products.Report]:
        """Return the reports that read no faulty dataset file; each fault is logged once."""
        faults = self.project.dataset_records.faults
        if not faults:
            return reports
        found: list[products.Report] = []
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

    def has(self, report: products.Product) -> bool:
        """Return whether a paper describes this report; other products always exist."""
        match report:
            case products.ExampleTable(paper, name):
                return name in self.project.papers[paper].examples
            case products.TranscriptTable(paper, name):
                return name in self.project.papers[paper].transcripts
            case products.LayerTable(paper, name):
                return name in self.project.papers[paper].layer_costs
            case products.Table(paper, name):
                return name in self.project.papers[paper].tables
        return True

    def closure(self, targets: Iterable[products.Product]) -> list[products.Product]:
        """Return `targets` and everything they depend on, each once, dependencies first."""
        found: dict[products.Product, None] = {}

        def visit(product: products.Product) -> None:
            if product in found:
                return
            for needed in flatten(self.inputs(product)):
                visit(needed)
            found[product] = None

        for target in targets:
            visit(target)
        return list(found)

    def inputs(self, product: products.Product) -> Inputs:
        """Return the direct inputs of a product, by the name that its rule gives them.

        Raises:
            UserError: The product refers to something that does not exist.
        """
        match product:
            case products.DatasetArtifact():
                return self.corpus_inputs(product)
            case products.RunArtifact():
                return self.run_inputs(product)
            case products.LayerTable():
                return {"times": products.LayerTimes()}
            case products.ExampleTable(paper, table):
                return {"measured": reports.example_products(self.project, paper, table)}
            case products.TranscriptTable(paper, table):
                return {"measured": reports.transcript_products(self.project, paper, table)}
            case products.Table(paper, table):
                return {"measured": reports.table_products(self.project, paper, table)}
            case products.Figure(paper, figure):
                return {"measured": reports.figure_products(self.project, paper, figure)}
            case products.Claims(paper):
                return {"measured": reports.claim_products(self.project, paper)}
        return {}

    def corpus_inputs(self, product: products.DatasetArtifact) -> Inputs:
        """Return the inputs of a product of a dataset."""
        record = self.project.dataset_records[product.dataset]
        raw: dict[str, products.Product | list[products.Product]] = (
            {"raw": products.Raw(product.dataset)} if record.collector else {}
        )
        prepared = {"prepared": products.Prepared(product.dataset)}
        if isinstance(product, products.Raw):
            return {}
        if isinstance(product, products.Spoken):
            return raw
        match record.form:
            case "speech":  # features are prepared and encoded in one stage
                return {"spoken": products.Spoken(product.dataset)} if record.is_read_aloud else raw
            case "characters":
                return raw
        match product:
            case products.Vocabulary():
                return prepared
            case products.Encoded():
                return {**prepared, "vocabulary": products.Vocabulary(product.dataset)}
        return raw

    def run_inputs(self, product: products.RunArtifact) -> Inputs:
        """Return the inputs of a product of a run.

        Raises:
            TypeError: The graph has no such product of a run.
        """
        run = product.run
        corpus = {"corpus": products.Encoded(run.dataset)}
        match product:
            case products.Trained():
                sources: list[products.Product] = [
                    products.Trained(other) for other in self.project.weight_sources(run).values()
                ]
                return {**corpus, "others": sources}
            case products.Averaged():
                return {"trained": products.Trained(run)}
            case products.Gates() | products.Alignments():
                return {"trained": products.Trained(run), **corpus}
            case products.Translation(_, decoding, _) | products.Parse(_, decoding, _):
                return {**self.decoding_inputs(run, decoding), **corpus}
            case products.Tuned(_, decoding):
                others: list[products.Product] = [
                    products.Tuned(other, decoding) for other in self.project.tuning_runs(run, decoding)
                ]
                return {**self.decoding_inputs(run, decoding), **corpus, "tuned_with": others}
            case products.AttentionMaps(_, decoding, _, _):
                return {"weights": self.weights(run, decoding), **corpus}
            case products.Transcript(_, decoding, _, scored_on):
                tuned = self.project.decoding(run.paper, run.system, decoding).tuned
                chosen = {"tuned": products.Tuned(run, decoding)} if tuned else {}
                return {**self.decoding_inputs(run, decoding), **chosen, "scored_on": products.Encoded(scored_on)}
            case products.Score():
                return self.score_inputs(product)
        raise TypeError(f"no inputs are known for {product!r}")

    def score_inputs(self, score: products.Score) -> Inputs:
        """Return the inputs of a score, which depend on what is scored."""
        run, decoding, split = score.run, score.decoding, score.split
        corpus = {"corpus": products.Encoded(run.dataset)}
        other_corpus = {"scored_on": products.Encoded(score.scored_on)} if score.scored_on else {}
        if score.measure == "perplexities":
            return {"weights": self.weights(run, decoding), **corpus, **other_corpus}
        if score.scored_on:
            return {"transcript": products.Transcript(run, decoding, split, score.scored_on), **other_corpus}
        if self.project.dataset_records[run.dataset].form == "trees":
            return {"parse": products.Parse(run, decoding, split), "prepared": products.Prepared(run.dataset)}
        translation = {"translation": products.Translation(run, decoding, split)}
        prepared: dict[str, products.Product] = {"prepared": products.Prepared(run.dataset)}
        if score.measure == "phenomena":  # the expected phenomena are beside the raw text
            return translation | corpus | prepared | {"raw": products.Raw(run.dataset)}
        return translation | prepared

    def weights(self, run: products.RunId, decoding: str) -> products.Product:
        """Return the weights that a decoding loads: averaged checkpoints, or the final weights of the training."""
        averages = self.project.decoding(run.paper, run.system, decoding).reads_checkpoints
        return products.Averaged(run, decoding) if averages else products.Trained(run)

    def decoding_inputs(self, run: products.RunId, decoding: str) -> Inputs:
        """Return the weights of a decoding, and its external language model if there is one."""
        other = self.project.decoding_language_model(run, decoding)
        language_model = {"language_model": products.Trained(other)} if other else {}
        return {"weights": self.weights(run, decoding), **language_model}


def flatten(inputs: Inputs) -> list[products.Product]:
    """Return all products of some inputs."""
    return [item for value in inputs.values() for item in (value if isinstance(value, list) else [value])]


def runs_in(found: Iterable[products.Product]) -> list[products.RunId]:
    """Return the runs that are trained for some products, in order."""
    return list(dict.fromkeys(product.run for product in found if isinstance(product, products.Trained)))


def datasets_in(found: Iterable[products.Product]) -> list[str]:
    """Return the datasets that some products are made from, in alphabetical order."""
    return sorted({product.dataset for product in found if isinstance(product, products.DatasetArtifact)})

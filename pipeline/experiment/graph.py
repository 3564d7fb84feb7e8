"""What everything is made from, said once: rules, plan, checks of data and clearing up read it.

`inputs` is one step; `closure` goes on to the corpora: over averaged weights, language models of fusions and decodings,
runs that others start from, and corpora that are only scored on.
"""

from collections.abc import Iterable, Mapping

from pipeline.experiment import reports
from pipeline.experiment.project import Project
from pipeline.products import (
    Alignments,
    AttentionMaps,
    Averaged,
    Claims,
    Encoded,
    ExampleTable,
    Figure,
    Gates,
    LayerTable,
    LayerTimes,
    OfDataset,
    OfRun,
    Parse,
    Prepared,
    Product,
    Raw,
    Report,
    RunId,
    Score,
    Specification,
    Spoken,
    Table,
    Trained,
    Transcript,
    TranscriptTable,
    Translation,
    Tuned,
    Vocabulary,
)

Inputs = Mapping[str, Product | list[Product]]


class Graph:
    """The papers of a project as a directed acyclic graph of products."""

    def __init__(self, project: Project):
        self.project = project

    def reports(self, papers: Iterable[str]) -> list[Report]:
        """Every table, claim and figure that can be made of some papers at this scale."""
        found: list[Report] = []
        for paper in papers:
            record = self.project.papers[paper]
            found += [
                Table(paper, name) for name in self.project.tables_here(paper) if not record.tables[name].on_request
            ]
            found += [ExampleTable(paper, name) for name in record.examples]
            found += [TranscriptTable(paper, name) for name in record.transcripts]
            found += [LayerTable(paper, name) for name in record.layer_costs]
            found += [Figure(paper, name) for name in record.figures]
            claims = self.project.claims[paper].claims.values()
            found += [Claims(paper)] if any(claim.is_tested(self.project.config.scale) for claim in claims) else []
        return found

    def has(self, report: Product) -> bool:
        """Whether a paper's file describes a report of this kind under its name; all else is taken to be there."""
        match report:
            case ExampleTable(paper, name):
                return name in self.project.papers[paper].examples
            case TranscriptTable(paper, name):
                return name in self.project.papers[paper].transcripts
            case LayerTable(paper, name):
                return name in self.project.papers[paper].layer_costs
            case Table(paper, name):
                return name in self.project.papers[paper].tables
        return True

    def closure(self, targets: Iterable[Product]) -> list[Product]:
        """`targets` and all that they are made from, each once, what is needed before what needs it."""
        found: dict[Product, None] = {}

        def visit(product: Product) -> None:
            if product in found:
                return
            for needed in flat(self.inputs(product)):
                visit(needed)
            found[product] = None

        for target in targets:
            visit(target)
        return list(found)

    def inputs(self, product: Product) -> Inputs:
        """What `product` is made from, by the name that its rule gives it.

        Raises:
            UserError: something that it refers to does not exist.
        """
        match product:
            case OfDataset():
                return self.of_corpus(product)
            case OfRun():
                return self.of_run(product)
            case LayerTable():
                return {"times": LayerTimes()}
            case ExampleTable(paper, table):
                return {"measured": reports.example_products(self.project, paper, table)}
            case TranscriptTable(paper, table):
                return {"measured": reports.transcript_products(self.project, paper, table)}
            case Table(paper, table):
                return {"measured": reports.table_products(self.project, paper, table)}
            case Figure(paper, figure):
                return {"measured": reports.figure_products(self.project, paper, figure)}
            case Claims(paper):
                return {"measured": reports.claim_products(self.project, paper)}
        return {}

    def of_corpus(self, product: OfDataset) -> Inputs:
        record = self.project.dataset_records[product.dataset]
        raw: dict[str, Product | list[Product]] = {"raw": Raw(product.dataset)} if record.collector else {}
        prepared = {"prepared": Prepared(product.dataset)}
        if isinstance(product, Raw):
            return {}
        if isinstance(product, Spoken):
            return raw
        match record.form:
            case "speech":  # features are prepared and encoded in one stage
                return {"spoken": Spoken(product.dataset)} if record.is_read_aloud else raw
            case "characters":
                return raw
        match product:
            case Vocabulary():
                return prepared
            case Encoded():
                return {**prepared, "vocabulary": Vocabulary(product.dataset)}
        return raw

    def of_run(self, product: OfRun) -> Inputs:
        run = product.run
        corpus = {"corpus": Encoded(run.dataset)}
        match product:
            case Specification():
                return {}
            case Trained():
                taken: list[Product] = [Trained(other) for other in self.project.runs_taken(run)]
                return {"specification": Specification(run), **corpus, "others": taken}
            case Averaged():
                return {"trained": Trained(run)}
            case Gates() | Alignments():
                return {"trained": Trained(run), **corpus}
            case Translation(_, decoding, _) | Parse(_, decoding, _) | Tuned(_, decoding):
                return {**self.decoded_with(run, decoding), **corpus}
            case AttentionMaps(_, decoding, _, _):
                return {"weights": self.weights(run, decoding), **corpus}
            case Transcript(_, decoding, _, scored_on):
                tuned = self.project.decoding(run.paper, run.system, decoding).tuned
                chosen = {"tuned": Tuned(run, decoding)} if tuned else {}
                return {**self.decoded_with(run, decoding), **chosen, "scored_on": Encoded(scored_on)}
            case Score():
                return self.of_score(product)
        raise TypeError(f"nothing is known of {product!r}")

    def of_score(self, score: Score) -> Inputs:
        """By what is scored: log-likelihoods, translations, transcripts or parses."""
        run, decoding, split = score.run, score.decoding, score.split
        corpus = {"corpus": Encoded(run.dataset)}
        elsewhere = {"scored_on": Encoded(score.scored_on)} if score.scored_on else {}
        if score.measure == "perplexities":
            return {"weights": self.weights(run, decoding), **corpus, **elsewhere}
        if score.scored_on:
            return {"transcript": Transcript(run, decoding, split, score.scored_on), **elsewhere}
        if self.project.dataset_records[run.dataset].form == "trees":
            return {"parse": Parse(run, decoding, split), "prepared": Prepared(run.dataset)}
        translation = {"translation": Translation(run, decoding, split)}
        prepared: dict[str, Product] = {"prepared": Prepared(run.dataset)}
        if score.measure == "phenomena":  # what is right lies beside the raw text
            return translation | corpus | prepared | {"raw": Raw(run.dataset)}
        return translation | prepared

    def weights(self, run: RunId, decoding: str) -> Product:
        """What a decoding reads: averaged checkpoints where it averages, else the training's own final weights."""
        averages = self.project.decoding(run.paper, run.system, decoding).reads_checkpoints
        return Averaged(run, decoding) if averages else Trained(run)

    def decoded_with(self, run: RunId, decoding: str) -> Inputs:
        """The weights of a decoding, and the language model beside them if there is one."""
        other = self.project.decoding_language_model(run, decoding)
        language_model = {"language_model": Trained(other)} if other else {}
        return {"weights": self.weights(run, decoding), **language_model}


def flat(inputs: Inputs) -> list[Product]:
    """All products of some inputs."""
    return [one for value in inputs.values() for one in (value if isinstance(value, list) else [value])]


def runs_in(products: Iterable[Product]) -> list[RunId]:
    """Runs that are trained for some products, in order."""
    return list(dict.fromkeys(product.run for product in products if isinstance(product, Trained)))


def datasets_in(products: Iterable[Product]) -> list[str]:
    """Datasets whose corpora some products are made from, in alphabetical order."""
    return sorted({product.dataset for product in products if isinstance(product, OfDataset)})

"""Claims of a test's own, judged by runs with made-up scores and logs."""

from fabricated import perplexity_statistics, write_score

from pipeline.analysis.view import PaperView
from pipeline.report import claims

UPHELD, UNCLEAR, CONTRADICTED, NOT_RUN = "upheld", "not distinguishable", "contradicted", "not run"
DATA = "wmt14-en-de"
SCORES = {
    "ppl": {"metric": "perplexity", "dataset": DATA, "split": "dev", "decoding": "final"},
    "bleu": {"metric": "bleu_paper", "dataset": DATA, "split": "dev", "decoding": "final"},
    "gleu": {"metric": "gleu", "dataset": DATA, "split": "dev", "decoding": "final"},
}


def claims_of(**claim):
    return {"scores": SCORES, "claims": {"one": {"statement": "It is so.", "printed": "Table 9", **claim}}}


def runs(project, system):
    return project.runs_of("weighted", system, DATA)


def claim_rows(project, paper):
    """Rows of evaluated claims, which name systems as settings files do."""
    return [claims.row_of(result) for result in project.claims[paper].evaluate(PaperView(project, paper))]


def row_of(project):
    (row,) = claim_rows(project, "weighted")
    return row


def direction(row):
    """The verdict, provisional or not."""
    return row["verdict"].removeprefix("provisional ")


def put_perplexities(project, **nll):
    for system, value in nll.items():
        for run in runs(project, system):
            write_score(project, run, "perplexity", "final", "dev", perplexity_statistics(value, run.seed))

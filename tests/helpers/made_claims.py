"""Claims of a test's own, judged by runs with made-up scores and logs."""

from fabricated import bleu_statistics, perplexity_statistics, write_score, write_training

from pipeline.analysis.run_folders import RunFolders
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


def order(score="ppl", **more):
    """Return the claim that C has a higher number than A."""
    return claims_of(kind="order", score=score, ascending=["A", "C"], **more)


def runs(project, system):
    return project.runs_of("weighted", system, DATA)


def claim_rows(project, paper):
    """Rows of evaluated claims, which name systems as settings files do."""
    return [claims.row_of(result) for result in project.claims[paper].evaluate(RunFolders(PaperView(project, paper)))]


def row_of(project):
    (row,) = claim_rows(project, "weighted")
    return row


def direction(row):
    """The verdict, provisional or not."""
    return row["verdict"].removeprefix("provisional ")


def put_perplexities(project, split="dev", **nll):
    """Score the runs of systems: nats a subword."""
    for system, value in nll.items():
        for run in runs(project, system):
            write_score(project, run, "perplexity", "final", split, perplexity_statistics(value, run.seed))


def put_bleu(project, split="dev", decoding="final", seed=0, **precision):
    """Score the runs of systems: the share of n-grams that match."""
    for system, share in precision.items():
        for run in runs(project, system):
            write_score(project, run, "bleu_paper", decoding, split, bleu_statistics(share, seed))


def put_late_losses(project, **last):
    """Train systems to a dev loss of 2, and to `last` in the last fifth of their steps."""
    for system, loss in last.items():
        for run in runs(project, system):
            write_training(project, run, [2.0] * 8 + [loss] * 2, [1.0] * 10)

"""What each report of a paper stands on: products that its cells, figures, claims and texts ask for."""

from typing import TYPE_CHECKING

from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Encoded, Product, RunId, Score, Transcript, Translation

if TYPE_CHECKING:
    from pipeline.papers.project import Project


def table_products(project: "Project", paper: str, table: str) -> list[Product]:
    """All that a table is filled in with."""
    view, cells = PaperView(project, paper), project.table(paper, table).cells.values()
    rows = project.printed[paper][table]
    return list(dict.fromkeys(product for row in rows for cell in cells for product in cell.needs(view, row)))


def transcript_products(project: "Project", paper: str, table: str) -> list[Product]:
    """The corpus whose utterances are shown, and what each system writes down of it."""
    corpus = project.stand_in(project.transcript_table(paper, table).scored_on)
    return [Encoded(corpus), *dict.fromkeys(transcripts(project, paper, table).values())]


def transcripts(project: "Project", paper: str, table: str) -> dict[str, Transcript]:
    """What such a table shows or is chosen by, by system; of the first seed."""
    entry = project.transcript_table(paper, table)
    named = (entry.chosen_by, *(row["system"] for row in project.printed[paper][table] if row["system"]))
    runs = {system: project.runs_of(paper, system, entry.dataset)[0] for system in named}
    corpus = project.stand_in(entry.scored_on)
    return {system: Transcript(run, entry.decoding, entry.split, corpus) for system, run in runs.items()}


def example_runs(project: "Project", paper: str, table: str) -> dict[str, RunId]:
    """The run that translates the sentence of a table of examples, by row: that of the first seed."""
    dataset = project.examples(paper, table).dataset
    rows = [row for row in project.printed[paper][table] if row["source"] == "ours-to-run"]
    return {row["item"]: project.runs_of(paper, row["system"], dataset)[0] for row in rows}


def example_products(project: "Project", paper: str, table: str) -> list[Product]:
    """The corpus that a sentence is chosen from, its translations, and the scores that it is chosen by."""
    entry, runs = project.examples(paper, table), example_runs(project, paper, table).values()
    found: list[Product] = [Encoded(project.stand_in(entry.dataset))]
    for run in runs:
        found += [Translation(run, entry.decoding, split) for split in entry.splits]
        found += [Score(run, "scores", entry.decoding, split) for split in entry.splits]
    return list(dict.fromkeys(found))


def figure_products(project: "Project", paper: str, figure: str) -> list[Product]:
    """All that a figure is drawn from."""
    return list(dict.fromkeys(project.figure(paper, figure).needs(PaperView(project, paper))))


def claim_products(project: "Project", paper: str) -> list[Product]:
    """All that the claims of a paper stand on at this scale, every run's training among it."""
    claims, view = project.claims[paper], PaperView(project, paper)
    tested = [claim for claim in claims.claims.values() if claim.is_tested(project.config.scale)]
    return list(dict.fromkeys(product for claim in tested for product in claim.needs(view, claims.scores)))

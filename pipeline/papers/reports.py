"""Artifacts that each report of a paper needs: tables, figures, claims, examples and transcripts."""

from typing import TYPE_CHECKING

from pipeline.analysis.view import PaperView
from pipeline.core.artifacts import Encoded, Product, RunId, Score, Transcript, Translation

if TYPE_CHECKING:
    from pipeline.papers.project import Project


def table_products(project: "Project", paper: str, table: str) -> list[Product]:
    """Return the artifacts that a table is filled from."""
    view, cells = PaperView(project, paper), project.table(paper, table).cells.values()
    rows = project.printed[paper][table]
    return list(dict.fromkeys(product for row in rows for cell in cells for product in cell.needs(view, row)))


def transcript_products(project: "Project", paper: str, table: str) -> list[Product]:
    """Return the artifacts of a table of transcripts: the corpus and each system's transcripts."""
    corpus = project.stand_in(project.transcript_table(paper, table).scored_on)
    return [Encoded(corpus), *dict.fromkeys(transcripts(project, paper, table).values())]


def transcripts(project: "Project", paper: str, table: str) -> dict[str, Transcript]:
    """Return the transcripts that a table shows or selects utterances by, by system, of the first seed."""
    entry = project.transcript_table(paper, table)
    named = (entry.chosen_by, *(row["system"] for row in project.printed[paper][table] if row["system"]))
    runs = {system: project.runs_of(paper, system, entry.dataset)[0] for system in named}
    corpus = project.stand_in(entry.scored_on)
    return {system: Transcript(run, entry.decoding, entry.split, corpus) for system, run in runs.items()}


def example_runs(project: "Project", paper: str, table: str) -> dict[str, RunId]:
    """Return the run of each row of a table of example translations, of the first seed."""
    dataset = project.examples(paper, table).dataset
    rows = [row for row in project.printed[paper][table] if row["source"] == "ours-to-run"]
    return {row["item"]: project.runs_of(paper, row["system"], dataset)[0] for row in rows}


def example_products(project: "Project", paper: str, table: str) -> list[Product]:
    """Return the artifacts of a table of examples: the corpus, its translations and their scores."""
    entry, runs = project.examples(paper, table), example_runs(project, paper, table).values()
    found: list[Product] = [Encoded(project.stand_in(entry.dataset))]
    for run in runs:
        found += [Translation(run, entry.decoding, split) for split in entry.splits]
        found += [Score(run, "scores", entry.decoding, split) for split in entry.splits]
    return list(dict.fromkeys(found))


def figure_products(project: "Project", paper: str, figure: str) -> list[Product]:
    """Return the artifacts that a figure is drawn from."""
    return list(dict.fromkeys(project.figure(paper, figure).needs(PaperView(project, paper))))


def claim_products(project: "Project", paper: str) -> list[Product]:
    """Return the artifacts that a paper's claims need at this scale, including all trainings."""
    claims, view = project.claims[paper], PaperView(project, paper)
    tested = [claim for claim in claims.claims.values() if claim.is_tested(project.config.scale)]
    return list(dict.fromkeys(product for claim in tested for product in claim.needs(view, claims.scores)))

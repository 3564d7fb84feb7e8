"""Scores as tables of the papers print them."""

from pipeline.analysis.cells.scores import ScoreCell
from pipeline.analysis.view import NamedScore, ScoredSplits, Term
from pipeline.papers.project import Project


def printed_score(project: Project, paper: str, term: Term, score: NamedScore) -> float | None:
    """Return the score of a term in the first table of the paper, or of the system's own paper, that prints it."""
    where, decodings = project.locate(term.system, paper), term.decodings or [score.decoding]
    for owner in dict.fromkeys((paper, where[0])):
        for name, table in project.papers[owner].tables.items():
            for cell in table.cells.values():
                if not isinstance(cell, ScoreCell) or cell.printed is None or scored(cell) != scored(score):
                    continue
                for row in project.printed[owner][name]:
                    named = row[cell.system] and project.locate(row[cell.system], owner) == where
                    if row[cell.printed] and named and cell.decodings_of(row) == decodings:
                        return float(row[cell.printed])
    return None


def scored(what: ScoredSplits) -> tuple[object, ...]:
    """Return metric, training data, scored dataset and splits of a score, which are equal for comparable scores."""
    return what.metric, what.dataset, what.scored_on or what.dataset, what.splits

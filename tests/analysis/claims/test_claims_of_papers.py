"""The papers' claims themselves: each names systems, decodings and tests that exist."""

import ast
import re

import pytest
from cell_runs import cell_runs
from real_project import real_project

from pipeline.analysis.cells.scores import ScoreCell
from pipeline.analysis.claims.scores import GapClaim, ScoreClaim
from pipeline.analysis.claims.without_training import ProvedClaim
from pipeline.analysis.evidence import training_sample
from pipeline.analysis.view import NamedScore, ScoredSplits, Term
from pipeline.core.artifacts import Trained
from pipeline.core.provenance import ROOT
from pipeline.metrics import metric_named
from pipeline.papers.reports import claim_artifacts

PROJECT = real_project({"scale": "paper"})
TESTS = [
    (f"{paper}/{name}", test)
    for paper, claims in PROJECT.claims.items()
    for name, claim in claims.claims.items()
    if isinstance(claim, ProvedClaim)
    for test in claim.tests
]


@pytest.mark.parametrize(("claim", "test"), TESTS)
def test_a_test_that_a_claim_names_exists(claim, test):
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("paper", [name for name, claims in PROJECT.claims.items() if claims.claims])
def test_every_claim_says_what_is_printed(paper):
    for claim in PROJECT.claims[paper].claims.values():
        assert claim.statement.endswith(".")
        where = ("Table", "Section", "Figure", "Abstract")
        if PROJECT.papers[paper].as_published:  # a number of other authors, named with a year or a recipe
            where = ("(20", "recipe")
        assert any(word in claim.printed for word in where)


def test_every_system_that_a_claim_compares_stands_in_a_table():
    """So that a claim never needs a run that no table shows."""
    shown = {
        cell.run
        for paper in PROJECT.papers
        for table in PROJECT.tables_here(paper)
        for cell in cell_runs(PROJECT, paper, table)
    }
    for paper in PROJECT.papers:
        assert {artifact.run for artifact in claim_artifacts(PROJECT, paper) if isinstance(artifact, Trained)} <= shown


def measure(scored: ScoredSplits) -> tuple:
    return scored.metric, scored.dataset, scored.scored_on or scored.dataset, scored.splits


def printed_values(paper: str, score: NamedScore, term: Term) -> set[float]:
    """Numbers that the tables of a paper print for a term under a score."""
    decodings = term.decodings or [score.decoding]
    return {
        float(row[cell.printed])
        for table in PROJECT.tables_here(paper)
        for cell in PROJECT.table(paper, table).cells.values()
        if isinstance(cell, ScoreCell) and cell.printed and measure(cell) == measure(score)
        for row in PROJECT.printed[paper][table]
        if row[cell.system] == term.system and row[cell.printed] and cell.decodings_of(row) == decodings
    }


@pytest.mark.parametrize("paper", [name for name, paper in PROJECT.papers.items() if not paper.as_published])
def test_claims_hold_of_the_printed_numbers_and_name_them(paper):
    """Unless a claim says that the table contradicts it."""
    checked, claims = 0, PROJECT.claims[paper]
    for name, claim in claims.claims.items():
        for link in claim.links().values() if isinstance(claim, ScoreClaim) else ():
            score, scale = claims.scores[link.score], metric_named(claims.scores[link.score].metric).comparison_scale
            found = [printed_values(paper, score, term) for term in link.compared]
            if not all(found):
                continue
            (numbers,) = zip(*found, strict=True)
            evidence = link.evidence([training_sample([number], "") for number in numbers], scale)
            assert all(effect.value > 0 for effect in evidence) is ("contradicts" not in claim.printed), name
            named = {float(number) for number in re.findall(r"\d+\.\d+", claim.printed)}
            assert isinstance(claim, GapClaim) or named >= {*numbers}, name
            checked += 1
    assert checked > 5

"""The papers' claims themselves: each names systems, decodings and tests that exist."""

import ast

import pytest
from cell_runs import cell_runs
from real_project import real_project

from pipeline.analysis.claims.without_training import ProvedClaim
from pipeline.core.artifacts import Trained
from pipeline.core.digests import ROOT
from pipeline.papers.reports import claim_products

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
        assert {product.run for product in claim_products(PROJECT, paper) if isinstance(product, Trained)} <= shown

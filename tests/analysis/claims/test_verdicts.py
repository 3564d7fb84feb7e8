"""P-values of claims of several quantities, and how groups of claims are counted."""

import pytest
from fabricated import perplexity_statistics, write_score
from made_claims import SCORES, claim_rows, claims_of, order, runs

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.run_folders import RunFolders
from pipeline.analysis.view import PaperView
from pipeline.report.claims import tally


def found(*values):
    return Findings("", [Evidence(f"{value}", value, 1.0) for value in values], "")


def test_claim_of_several_quantities_needs_all_of_them():
    one, both, mixed = found(2.0), found(2.0, 3.0), found(2.0, -3.0)
    assert one.p_value == pytest.approx(2 * one.p_upheld) == pytest.approx(0.0455, abs=1e-4)
    assert both.p_value == pytest.approx(one.p_value)
    assert mixed.p_contradicted == pytest.approx(2 * found(3.0).p_upheld)
    assert mixed.p_value == pytest.approx(2 * mixed.p_contradicted)
    assert found().p_value is None
    assert Findings("", [Evidence("", 1.0, None)], "").p_value is None


def test_primary_claims_are_counted_apart_and_adjusted_alone(project_with):
    """Ten others that show nothing leave a primary claim as it is; an identity is no evidence."""
    claim, identity = order()["claims"]["one"], claims_of(kind="test", tests=["tests/a.py::test_b"])["claims"]["one"]
    others = {f"other{i}": claim | {"ascending": ["A", "N4"]} for i in range(10)}
    claims = {"one": claim, **others, "identity": identity}
    project = project_with({"scores": SCORES, "claims": claims, "primary": ["one"]}, seeds=3)
    for system, mean in (("A", 1.0), ("N4", 1.0), ("C", 1.035)):
        for run in runs(project, system):
            rows = perplexity_statistics(mean + 0.01 * (run.seed % 2), run.seed + 10 * len(system))
            write_score(project, run, "perplexity", "final", "dev", rows)
    identity, first, *rows = claim_rows(project, "weighted")
    assert (first["group"], first["verdict"], first["p_adjusted"]) == ("primary", "upheld", first["p_value"])
    assert {(row["group"], row["verdict"]) for row in rows} == {("other", "not distinguishable")}
    assert (identity["group"], identity["verdict"]) == ("identity", "tested")
    results = project.claims["weighted"].evaluate(RunFolders(PaperView(project, "weighted")))
    parts = ["Primary claims: 1 of 1 decided (1 upheld)", "Others: 0 of 10 decided (10 not distinguishable)"]
    assert tally(results) == ". ".join([*parts, "Identities: 1 tested"])


def test_claims_are_not_called_others_if_none_is_primary(project_with):
    """A new comparison of one's own has no primary claim."""
    project = project_with(order())
    results = project.claims["weighted"].evaluate(RunFolders(PaperView(project, "weighted")))
    assert tally(results) == "Claims: 0 of 1 decided (1 not run)"

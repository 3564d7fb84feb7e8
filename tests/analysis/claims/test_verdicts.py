"""Adjustment for claims that are decided together, by Holm and by Benjamini and Hochberg, against their definitions."""

import numpy as np
import pytest
from fabricated import perplexity_statistics, write_score
from made_claims import claim_rows, claims_of, row_of, runs

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.verdicts import LEVEL, Verdict, false_discovery, holm
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.view import PaperView
from pipeline.report.claims import tally

P_VALUES = np.random.default_rng(0).uniform(0, 0.2, (50, 6))


@pytest.mark.parametrize("p_values", P_VALUES[:20].tolist())
def test_holm_steps_down_until_one_is_too_large(p_values):
    rejected = set()
    for step, number in enumerate(np.argsort(p_values)):
        if p_values[number] > LEVEL / (len(p_values) - step):
            break
        rejected.add(int(number))
    assert {i for i, p in enumerate(holm(p_values)) if p <= LEVEL} == rejected


@pytest.mark.parametrize("p_values", P_VALUES[20:40].tolist())
def test_false_discovery_takes_the_largest_below_its_line(p_values):
    ordered = sorted(p_values)
    below = [p for rank, p in enumerate(ordered, start=1) if p <= LEVEL * rank / len(ordered)]
    expected = {i for i, p in enumerate(p_values) if below and p <= max(below)}
    assert {i for i, p in enumerate(false_discovery(p_values)) if p <= LEVEL} == expected


def test_adjustment_of_no_results_is_empty():
    assert holm([]) == false_discovery([]) == []


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
    """Ten others that show nothing leave a primary claim as it is."""
    claims = claims_of(kind="order", score="ppl", ascending=["A", "C"])
    claim = claims["claims"]["one"]
    others = {f"other{i}": claim | {"ascending": ["A", "N4"]} for i in range(10)}
    project = project_with(claims | {"claims": {"one": claim} | others, "primary": ["one"]}, seeds=3)
    for system, mean in (("A", 1.0), ("N4", 1.0), ("C", 1.035)):
        for run in runs(project, system):
            rows = perplexity_statistics(mean + 0.01 * (run.seed % 2), run.seed + 10 * len(system))
            write_score(project, run, "perplexity", "final", "dev", rows)
    rows = claim_rows(project, "weighted")
    assert (rows[0]["group"], rows[0]["verdict"], rows[0]["p_adjusted"]) == ("primary", "upheld", rows[0]["p_value"])
    assert {(row["group"], row["verdict"]) for row in rows[1:]} == {("other", "not distinguishable")}
    text = tally(project.claims["weighted"].evaluate(PaperView(project, "weighted")))
    assert text == "Primary claims: 1 of 1 decided (1 upheld). Others: 0 of 10 decided (10 not distinguishable)"


def test_an_identity_is_counted_apart_from_evidence(project_with):
    project = project_with(claims_of(kind="test", tests=["tests/a.py::test_b"]))
    assert (row_of(project)["group"], row_of(project)["verdict"]) == ("identity", Verdict.TESTED)
    assert tally(project.claims["weighted"].evaluate(PaperView(project, "weighted"))) == "Identities: 1 tested"

"""A table of claims: every claim has its verdict, names what is missing, or reports a fault."""

import csv

import pytest
from made_claims import NOT_RUN, claims_of, order, put_perplexities, row_of
from real_project import real_project

from pipeline.__main__ import main
from pipeline.core.errors import UserError
from pipeline.papers.reports import claim_artifacts
from pipeline.report import claims

pytestmark = pytest.mark.usefixtures("loaded_once")


def test_a_claim_for_other_scales_is_not_run(project_with):
    project = project_with(order(scales=["paper"]))
    put_perplexities(project, A=1.0, C=2.0)
    assert row_of(project)["verdict"] == NOT_RUN
    assert claim_artifacts(project, "weighted") == []


PROVED = {"kind": "test", "tests": ["tests/a.py::test_b"]}


@pytest.mark.parametrize(("extra", "end"), [(False, ""), (True, " (Ours: the paper does not say so.)")])
def test_a_proved_statement_names_its_test_and_if_it_is_ours(project_with, extra, end):
    row = row_of(project_with(claims_of(**PROVED, extra=extra)))
    assert (row["verdict"], row["test"], row["statement"]) == ("tested", "tests/a.py::test_b", f"It is so.{end}")


def test_primary_claims_are_five_at_most_that_stand_on_trainings(project_with):
    claims, proved = order(), claims_of(**PROVED)["claims"]["one"]
    ours = claims["claims"]["one"] | {"extra": True}
    for primary, fault in (
        (["on"], "primary: unknown name 'on'; allowed: one, three, two; did you mean 'one'"),
        (["two"], "primary: two needs no training"),
        (["three"], "primary: three is an extra claim"),
        (["one", "one"], "primary: a claim is listed twice"),
        (["one"] * 6, "primary: .*at most 5"),
    ):
        with pytest.raises(UserError, match=fault):
            project_with(claims | {"claims": claims["claims"] | {"two": proved, "three": ours}, "primary": primary})


def test_an_unknown_score_or_key_is_one_line(project_with):
    with pytest.raises(UserError, match=r"claims\.one: no score 'ter'; there are bleu, gleu, ppl$"):
        project_with(claims_of(kind="order", score="ter", ascending=["A", "C"]))
    with pytest.raises(UserError, match="ascendign: unknown key; allowed: ascending, equal_budgets, extra, kind"):
        project_with(claims_of(kind="order", score="ppl", ascending=["A", "C"], ascendign=1))


def test_stage_writes_every_claim_as_not_run_without_runs(tmp_path):
    out = tmp_path / "claims.csv"
    assert main(["claims", "--paper", "attention", "--set", f"work={tmp_path}", "--out", str(out)]) == 0
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert {row["verdict"] for row in rows} == {"not run", "tested"}
    text = out.with_suffix(".md").read_text(encoding="utf-8")
    assert all(f"## {row['claim']}" in text and row["statement"] in text for row in rows)


def test_claims_name_the_seeds_that_a_scale_adds(tmp_path):
    """The scale `paper` has three seeds of main systems, also if the configuration has one; anchors have no claim."""
    project = real_project({"work": str(tmp_path), "scale": "paper", "seeds": 1})
    assert "; seed 1, 2, 3 (of some systems 1).\n" in claims.render(project, "attention", [])
    assert "; seed 1.\n" in claims.render(project, "coldfusion", [])
    assert "Trained" not in claims.render(project, "anchors", [])

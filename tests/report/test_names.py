"""Claims name systems and metrics as readers know them, and keep other words."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.verdicts import ClaimResult, Verdict
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.view import PaperView
from pipeline.papers.project import load_project
from pipeline.report.names import Labels, report_title

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["better-two-layers", "faster-two-layers"])
def test_systems_of_scores_and_trainings_are_named(name):
    project = load_project(ROOT)
    claim = project.claims["weighted"].claims[name]
    evidence = [Evidence("C − attention/C1", 1.0, 0.5, noise="of 20 trainings of attention/C1")]
    why = "C: wer of 9 is high: symbol frequencies alone give less in most vocabularies"
    one = ClaimResult(
        name, claim, "other", Verdict.NOT_TRAINED, why, Findings("attention/C1 3.0, C 4.0", evidence, "t")
    )
    found = Labels(PaperView(project, "weighted")).result(one)
    ours, theirs = "Weighted Transformer, N = 2", "Transformer C"
    assert found.why == f"{ours}: WER of 9 is high: symbol frequencies alone give less in most vocabularies"
    assert found.found is not None and found.found.ours == f"{theirs} 3.0, {ours} 4.0"
    assert found.found.evidence == [
        replace(evidence[0], name=f"{ours} − {theirs}", noise=f"of 20 trainings of {theirs}")
    ]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("table2", "Table 2"),
        ("figure12", "Figure 12"),
        ("readings_large", "Readings large"),
        ("ablations", "Ablations"),
    ],
)
def test_reports_have_titles(name, title):
    assert report_title(name) == title

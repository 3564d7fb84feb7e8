"""Claims about gates between channels, judged by made-up ones."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from fabricated import AT_PLATEAU, folder_of, write_training
from made_claims import claim_rows
from real_project import real_project

from pipeline.analysis.claims.inside_models import WordKind
from pipeline.core.artifacts import Gates
from pipeline.core.json_csv import write_json
from pipeline.metrics import write_statistics
from pipeline.papers.reports import claim_products

ROOT = Path(__file__).resolve().parents[3]


def put_gates(project, claim, means: dict[str, float], words: int = 2) -> None:
    """`words` of each kind in every one of 200 sentences, their gates spread around the mean of their kind."""
    rng = np.random.default_rng(3)

    def rows(mean: float) -> np.ndarray:
        noise = rng.normal(0, 0.02, 200)
        return np.stack((words * (mean + noise - noise.mean()), np.full(200, words)), axis=1)

    named = {f"{claim.channel}.{kind}": rows(means.get(kind, 0.5)) for kind in get_args(WordKind)}
    for run in project.runs_of("multichannel", claim.system, claim.dataset):
        write_statistics(folder_of(project, run) / "gates.npz", named)
        write_json(folder_of(project, run) / "gates.json", {"statistics": "gates.npz"})
        write_training(project, run, AT_PLATEAU, AT_PLATEAU)


@pytest.fixture
def project(tmp_path):
    return real_project({"work": str(tmp_path), "scale": "demo"})


def judge(project, name) -> dict[str, str]:
    return next(row for row in claim_rows(project, "multichannel") if row["claim"] == name)


@pytest.mark.parametrize(
    ("name", "first", "second", "expected"),
    [
        ("gate-idioms-full", 0.4, 0.5, "upheld"),
        ("gate-idioms-full", 0.5, 0.5, "not distinguishable"),
        ("gate-idioms-full", 0.5, 0.4, "contradicted"),
        ("gate-names-states", 0.4, 0.5, "upheld"),
        ("gate-names-states", 0.5, 0.4, "upheld"),
        ("gate-names-states", 0.5, 0.51, "not distinguishable"),
        ("gate-names-states", 0.5, 0.5, "contradicted"),
    ],
)
def test_every_verdict_follows_from_the_gates(project, name, first, second, expected):
    claim = project.claims["multichannel"].claims[name]
    put_gates(project, claim, dict(zip(claim.words, (first, second), strict=True)))
    found = judge(project, name)
    assert found["verdict"].removeprefix("provisional ") == expected
    assert found["ours"] == f"mean z: {claim.words[0]} {first:.3f}, {claim.words[1]} {second:.3f}"
    assert found["test"] == "paired bootstrap over sentences; run-to-run variance unknown and not counted"


def test_too_few_words_say_nothing_and_no_run_is_no_verdict(project):
    claim = project.claims["multichannel"].claims["gate-idioms-full"]
    assert judge(project, "gate-idioms-full")["verdict"] == "not run"
    put_gates(project, claim, {"names": 0.4, "idioms": 0.5}, words=0)
    found = judge(project, "gate-idioms-full")
    assert found["verdict"] == "not distinguishable" and found["ours"] == "fewer than 20 words of names"


def test_a_claim_about_gates_asks_for_those_of_its_system(project):
    gates = (product for product in claim_products(project, "multichannel") if isinstance(product, Gates))
    assert {product.run.system for product in gates} == {"RNN-EMB", "NTM-RNN-EMB"}

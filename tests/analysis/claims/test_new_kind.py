"""A kind of claim is one file: a new one is read from claims.yaml, asks for what it needs, and is judged."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import get_args

import pytest
import toy_kinds
import yaml
from fabricated import write_training
from made_claims import DATA, runs

import pipeline.analysis.claims.kinds
from pipeline.analysis.claims.claim import Claim
from pipeline.analysis.discovery import kinds_in
from pipeline.papers.project import load_project

ROOT = Path(__file__).resolve().parents[3]
KINDS = kinds_in(pipeline.analysis.claims.kinds, Claim)

FIND_IT = """
    import sys

    import pipeline.analysis.claims.kinds

    pipeline.analysis.claims.kinds.__path__.append(sys.argv.pop(1))
"""
RUN_STAGE = """
    from pipeline.__main__ import main

    sys.exit(main())
"""
PRINT_NEEDS = """
    from pipeline.papers.project import load_project
    from pipeline.papers.reports import claim_products

    for product in claim_products(load_project(sys.argv[1]), "weighted"):
        print(type(product).__name__, product.run.folder)
"""


@pytest.fixture
def root(tmp_path):
    """A project whose paper `weighted` has claims of the new kind; of 300 updates, one asks for fewer, one for more."""
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    settings = {"paper": "weighted", "scale": "smoke", "seeds": 3, "work": str(tmp_path / "work")}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    common = {"kind": "long_training", "statement": "It is so.", "printed": "Table 9", "dataset": DATA, "system": "C"}
    claims = {"long": common | {"updates": 100}, "longer": common | {"updates": 500}}
    path = tmp_path / "workflow/papers/weighted/claims.yaml"
    path.write_text(yaml.safe_dump({"claims": claims}), encoding="utf-8")
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds/long_training.py").write_text(toy_kinds.CLAIM, encoding="utf-8")
    return tmp_path


def python(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=120).stdout


def with_toy(code: str, root: Path, *arguments: str) -> str:
    """What `code` prints where there is the new kind, too."""
    return python(dedent(FIND_IT) + dedent(code), str(root / "kinds"), *arguments)


def test_a_file_alone_makes_a_kind_of_claim(root):
    project = load_project(ROOT, {"scale": "smoke", "seeds": 3, "work": str(root / "work")})
    trained = runs(project, "C")
    assert with_toy(PRINT_NEEDS, root, str(root)) == "".join(f"Trained {run.folder}\n" for run in trained)

    out = root / "claims.csv"
    for run in trained:
        write_training(project, run, [3.0, 1.5, 1.5], [1.0] * 3, every=99 + run.seed)
    stage = ["claims", "--root", str(root), "--paper", "weighted", "--out", str(out)]
    with_toy(RUN_STAGE, root, *stage)
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert [(row["claim"], row["verdict"], row["ours"]) for row in rows] == [
        ("long", "upheld", "300 updates"),
        ("longer", "contradicted", "300 updates"),
    ]
    with_toy(RUN_STAGE, root, "schemas", "--out", str(root / "schemas"))
    assert "LongTraining" in json.loads((root / "schemas/claims.json").read_text(encoding="utf-8"))["$defs"]


def test_a_kind_is_named_as_its_file_is():
    assert {get_args(kind.model_fields["kind"].annotation) for kind in KINDS} == {
        (kind.__module__.rpartition(".")[2],) for kind in KINDS
    }


def test_kinds_are_found_without_what_draws_learns_or_counts():
    """Every dry run looks for them."""
    loaded = "import sys, pipeline.papers.claims; print(*(name for name in sys.modules if '.' not in name))"
    assert not {"torch", "matplotlib", "sacrebleu", "rapidfuzz", "sentencepiece"} & set(python(loaded).split())

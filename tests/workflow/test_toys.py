"""A new metric, cell, claim, figure or architecture takes one file and at most one entry in a list."""

import csv
import json
import shutil
from textwrap import dedent

import pytest
import toy_kinds
from copied_project import ROOT, call, copy_project, require, shrink

PAPER = {
    "workflow/papers/toy/paper.yaml": """
        title: Toys
        authors: Nobody
        year: 2026
        systems:
          bag:
            description: a bag of words
            model: {architecture: bag_of_words, width: 8}
            training: {max_steps: 100000, warmup_steps: 4000, tokens_per_update: 25000, validate_every: 1000,
                       checkpoint_every: 1000}
        decodings:
          final: {beam_size: 4, average_last: 1}
        tables:
          table1:
            caption: A toy of each kind.
            printed: table1.csv
            label: [model]
            cells:
              whole_lines: {metric: toy, dataset: wmt14-en-de, split: test, decoding: final, printed: whole_lines}
              letters: {kind: letters, times: 3, dataset: wmt14-en-de}
        figures:
          figure1: {kind: line, caption: A line., dataset: wmt14-en-de, system: bag}
    """,
    "workflow/papers/toy/table1.csv": """
        model,whole_lines,system,source
        Bag of words,,bag,ours-to-run
    """,
    "workflow/papers/toy/claims.yaml": """
        claims:
          trained: {kind: long_training, statement: It is., printed: "1", dataset: wmt14-en-de, system: bag, updates: 5}
    """,
}


@pytest.fixture
def root(tmp_path):
    """A copy of the project, code and all, with a toy of each kind and a paper that has one of each."""
    shrink(copy_project(tmp_path))
    (tmp_path / "pipeline").unlink()
    shutil.copytree(ROOT / "pipeline", tmp_path / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests/helpers/architectures/bag_of_words", tmp_path / "pipeline/models/bag_of_words")
    (tmp_path / "workflow/papers/toy").mkdir()
    toy_kinds.register(tmp_path)
    for name, content in PAPER.items():
        (tmp_path / name).write_text(dedent(content).lstrip(), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_a_toy_of_each_kind_works_end_to_end(root):
    require(call(root, "snakemake", "-j2", "--quiet", "rules", "--config", "scale=smoke", "--", "toy"))
    results = root / "results/smoke/toy"
    (row,) = csv.DictReader((results / "table1.csv").open(encoding="utf-8"))
    assert 0 <= float(row["whole_lines_ours"]) <= 100 and row["letters_ours"] == str(3 * len("bag"))
    (score,) = (root / "work/smoke/runs/toy").glob("bag/*/*/scores/final/test.json")
    assert json.loads(score.read_text())["metrics"]["toy"]["signature"] == "whole-lines"
    (claim,) = csv.DictReader((results / "claims.csv").open(encoding="utf-8"))
    assert claim["claim"] == "trained" and claim["ours"].endswith("updates")
    assert "It is straight." in (results / "figure1.md").read_text(encoding="utf-8")
    schemas = require(call(root, "python", "-m", "pipeline", "schemas", "--out", "schemas"))
    assert "error" not in schemas
    known = "".join(path.read_text() for path in (root / "schemas").glob("*.json"))
    assert all(name in known for name in ("LettersCell", "Line", "LongTraining", "bag_of_words"))

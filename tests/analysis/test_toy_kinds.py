"""A kind is a file: one dropped into its folder is loaded, checked, asked what it needs, filled in or drawn."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import toy_kinds
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def with_toys(tmp_path_factory):
    """A copy of the project with two files more, and a table and a figure of these kinds in a paper."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("pipeline", "workflow"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "config.yaml", folder)
    (folder / "pipeline/analysis/cells/kinds/letters.py").write_text(toy_kinds.CELL)
    (folder / "pipeline/analysis/figures/kinds/line.py").write_text(toy_kinds.FIGURE)
    path = folder / "workflow/papers/weighted/paper.yaml"
    paper = yaml.safe_load(path.read_text(encoding="utf-8"))
    paper["tables"]["table2"]["cells"]["letters"] = {"kind": "letters", "times": 3, "dataset": "wmt14-en-de"}
    paper["figures"]["figure9"] = {"kind": "line", "caption": "A line.", "dataset": "wmt14-en-de", "system": "C"}
    path.write_text(yaml.safe_dump(paper, sort_keys=False), encoding="utf-8")
    return folder


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def stage(folder, *arguments):
    return run(folder, "-m", "pipeline", *arguments, "--set", "scale=smoke", "--paper", "weighted")


def test_a_new_kind_of_cell_is_filled_in_and_shown(with_toys):
    done = stage(with_toys, "table", "--table", "table2", "--out", "out/table2.csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((with_toys / "out/table2.csv").open(encoding="utf-8")))
    assert rows[0]["letters_ours"] == str(3 * len("attention/C1"))
    markdown = (with_toys / "out/table2.md").read_text(encoding="utf-8")
    assert "letters ours" in markdown
    assert "- letters: letters, 3 times; `grammar-smoke-en-de` stands in for wmt14-en-de." in markdown


def test_a_new_kind_of_figure_is_drawn_once_what_it_needs_is_there(with_toys):
    missing = stage(with_toys, "figure", "--figure", "figure9", "--out", "out/figure9.svg")
    assert missing.returncode == 1
    assert "trained.json: no such file; figure figure9 of weighted is drawn from it" in missing.stderr
    made = with_toys / missing.stderr.split(": ")[1]
    made.parent.mkdir(parents=True)
    made.write_text("{}")
    done = stage(with_toys, "figure", "--figure", "figure9", "--out", "out/figure9.svg")
    assert done.returncode == 0, done.stderr
    assert (with_toys / "out/figure9.svg").exists()
    assert "It is straight." in (with_toys / "out/figure9.md").read_text(encoding="utf-8")


def test_the_graph_and_the_schemas_know_new_kinds(with_toys):
    script = (
        "from pipeline.papers.project import load_project\n"
        f"import sys; sys.path.append({str(ROOT / 'tests/helpers')!r})\n"
        "from cell_runs import cell_runs\n"
        "from pipeline.papers.reports import figure_products\n"
        "project = load_project('.', {'scale': 'smoke'})\n"
        "cells = cell_runs(project, 'weighted', 'table2')\n"
        "print(sum(cell.cell == 'letters' for cell in cells), len(figure_products(project, 'weighted', 'figure9')))\n"
    )
    assert run(with_toys, "-c", script).stdout.split() == ["10", "1"]
    assert run(with_toys, "-m", "pipeline", "schemas", "--out", "schemas").returncode == 0
    schema = json.loads((with_toys / "schemas/paper.json").read_text(encoding="utf-8"))
    assert {"LettersCell", "Line"} <= schema["$defs"].keys()


def test_a_wrong_value_of_a_new_kind_is_named(with_toys):
    path = with_toys / "workflow/papers/weighted/paper.yaml"
    right = path.read_text(encoding="utf-8")
    path.write_text(right.replace("times: 3", "tims: 3"), encoding="utf-8")
    done = stage(with_toys, "table", "--table", "table2", "--out", "out/wrong.csv")
    path.write_text(right, encoding="utf-8")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "tables.table2.cells.letters.letters.tims: unknown key; allowed: dataset, kind, printed" in done.stderr

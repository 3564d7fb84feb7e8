"""A new kind of cell, claim or figure is loaded, checked, asked what it needs, and filled in, judged or drawn."""

import csv
import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import threading
from inspect import isclass
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
import toy_kinds
import yaml
from fabricated import write_training
from made_claims import DATA, runs

from pipeline.analysis import cells, claims, figures
from pipeline.analysis.cells.cell import Cell
from pipeline.analysis.claims.claim import Claim
from pipeline.analysis.figures.figure import Figure
from pipeline.papers.project import load_project

ROOT = Path(__file__).resolve().parents[2]
PAPER = "workflow/papers/weighted/paper.yaml"


@pytest.fixture(scope="module")
def with_toys(tmp_path_factory):
    """A copy of the project with a toy of each kind, and a table, a figure and claims of these kinds in a paper."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("pipeline", "workflow"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "config.yaml", folder)
    toy_kinds.register(folder)
    path = folder / PAPER
    paper = yaml.safe_load(path.read_text(encoding="utf-8"))
    paper["tables"]["table2"]["cells"]["letters"] = {"kind": "letters", "times": 3, "dataset": DATA}
    paper["figures"]["figure9"] = {"kind": "line", "caption": "A line.", "dataset": DATA, "system": "C"}
    path.write_text(yaml.safe_dump(paper, sort_keys=False), encoding="utf-8")
    common = {"kind": "long_training", "statement": "It is so.", "printed": "Table 9", "dataset": DATA, "system": "C"}
    claims = {name: common | {"updates": updates} for name, updates in (("long", 100), ("longer", 500))}
    path.with_name("claims.yaml").write_text(yaml.safe_dump({"claims": claims}), encoding="utf-8")
    return folder


COMMANDS = """
import contextlib, io, json, sys, traceback
from pipeline.__main__ import main

for line in sys.stdin:
    kind, given = json.loads(line)
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            code = main(given) if kind == "stage" else exec(given, {})
        except BaseException:
            code, _ = 99, traceback.print_exc()
    print(json.dumps({"code": code, "out": out.getvalue(), "error": error.getvalue()}), flush=True)
"""


@pytest.fixture(scope="module")
def run(with_toys):
    """Run stages (a list of words) and scripts (a text) of the copied project, in one process that has imported it."""
    environment = {**os.environ, "PYTHONPATH": str(with_toys)}
    command, pipes = [sys.executable, "-c", COMMANDS], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=with_toys, env=environment, text=True, **pipes)

    def answer(given):
        process.stdin.write(json.dumps(["stage" if isinstance(given, list) else "script", given]) + "\n")
        process.stdin.flush()
        hung = threading.Timer(120, process.kill)
        hung.start()
        line = process.stdout.readline()
        hung.cancel()
        assert line, "the process died, or gave no answer in two minutes"
        return SimpleNamespace(**json.loads(line))

    yield answer
    process.stdin.close()
    assert process.wait(60) == 0


@pytest.fixture(scope="module")
def stage(run):
    return lambda *words: run([*words, "--set", "scale=smoke", "--paper", "weighted"])


def rows_of(path):
    return list(csv.DictReader(path.open(encoding="utf-8")))


def test_a_new_kind_of_cell_is_filled_in_and_shown(with_toys, stage):
    done = stage("table", "--table", "table2", "--out", "out/table2.csv")
    assert done.code == 0, done.error
    assert rows_of(with_toys / "out/table2.csv")[0]["letters_ours"] == str(3 * len("attention/C1"))
    markdown = (with_toys / "out/table2.md").read_text(encoding="utf-8")
    assert "letters ours" in markdown
    assert "- letters: letters, 3 times; `grammar-smoke-en-de` stands in for wmt14-en-de." in markdown


def test_new_kind_of_figure_is_drawn_from_its_products(with_toys, stage):
    command = ("figure", "--figure", "figure9", "--out", "out/figure9.svg")
    missing = stage(*command)
    assert missing.code == 1
    assert "done.json: no such file; figure figure9 of weighted needs it" in missing.error
    made = with_toys / missing.error.split(": ")[1]
    made.parent.mkdir(parents=True)
    made.write_text("{}")
    done = stage(*command)
    assert done.code == 0, done.error
    assert (with_toys / "out/figure9.svg").exists()
    assert "It is straight." in (with_toys / "out/figure9.md").read_text(encoding="utf-8")


def test_a_new_kind_of_claim_asks_for_trainings_and_is_judged(with_toys, run, stage):
    """Trainings of 300 steps; one claim asks for 100, one for 500."""
    work = str(with_toys / "claimed")
    settings = {"scale": "smoke", "seeds": 3, "work": work}
    script = (
        "from pipeline.papers.project import load_project\n"
        "from pipeline.papers.reports import claim_products\n"
        f"for product in claim_products(load_project('.', {settings!r}), 'weighted'):\n"
        "    print(type(product).__name__, product.run.folder)\n"
    )
    project = load_project(ROOT, settings)
    trained = runs(project, "C")
    assert run(script).out == "".join(f"Trained {training.folder}\n" for training in trained)
    for training in trained:
        write_training(project, training, [3.0, 1.5, 1.5], [1.0] * 3, every=99 + training.seed)
    done = stage("claims", "--out", "out/claims.csv", "--set", "seeds=3", "--set", f"work={work}")
    assert done.code == 0, done.error
    found = [(row["claim"], row["verdict"], row["ours"]) for row in rows_of(with_toys / "out/claims.csv")]
    assert found == [("long", "upheld", "300 updates"), ("longer", "contradicted", "300 updates")]


@pytest.mark.parametrize(
    ("package", "union", "base"),
    [(claims, claims.AnyClaim, Claim), (cells, cells.AnyCell, Cell), (figures, figures.AnyFigure, Figure)],
)
def test_every_class_with_a_kind_is_in_its_union(package, union, base):
    names = [f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)]
    classes = [inner for name in names for inner in vars(importlib.import_module(name)).values() if isclass(inner)]
    found = {inner for inner in classes if issubclass(inner, base) and "kind" in inner.model_fields}
    assert found == set(get_args(get_args(union)[0]))


def test_the_graph_and_the_schemas_know_new_kinds(with_toys, run):
    script = (
        "from pipeline.papers.project import load_project\n"
        f"import sys; sys.path.append({str(ROOT / 'tests/helpers')!r})\n"
        "from cell_runs import cell_runs\n"
        "from pipeline.papers.reports import figure_products\n"
        "project = load_project('.', {'scale': 'smoke'})\n"
        "cells = cell_runs(project, 'weighted', 'table2')\n"
        "print(sum(cell.cell == 'letters' for cell in cells), len(figure_products(project, 'weighted', 'figure9')))\n"
    )
    assert run(script).out.split() == ["10", "1"]
    assert run(["schemas", "--out", "schemas"]).code == 0
    for name, kinds in (("paper", {"LettersCell", "Line"}), ("claims", {"LongTraining"})):
        schema = json.loads((with_toys / f"schemas/{name}.json").read_text(encoding="utf-8"))
        assert kinds <= schema["$defs"].keys()


def test_a_wrong_value_of_a_new_kind_is_named(with_toys, stage):
    path = with_toys / PAPER
    right = path.read_text(encoding="utf-8")
    path.write_text(right.replace("times: 3", "tims: 3"), encoding="utf-8")
    done = stage("table", "--table", "table2", "--out", "out/wrong.csv")
    path.write_text(right, encoding="utf-8")
    assert done.code == 1 and "Traceback" not in done.error
    assert "tables.table2.cells.letters.letters.tims: unknown key; allowed: dataset, kind, printed" in done.error

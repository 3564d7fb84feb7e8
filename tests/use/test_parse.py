"""Sentences parsed by the command are the trees that the workflow scored, by the run and by its packed model."""

import json
from pathlib import Path

import pytest
from copied_project import call, copy_project, require

from pipeline.experiment.project import load_project
from pipeline.products import Prepared, Score
from reprise.__main__ import main as reprise
from reprise.named_run import named

RUN, SMOKE = "attention/parsing/wsj", ["--set", "scale=smoke"]


@pytest.mark.slow
def test_the_command_writes_the_trees_that_the_workflow_scored(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(root := copy_project(tmp_path))
    project = load_project(root, {"scale": "smoke"})
    score = Score(named(project, RUN), "scores", "parsing", "test")
    target = str(project.layout.path(score))
    require(call(root, "snakemake", "--cores", "1", "--quiet", "all", "--config", "scale=smoke", "--", target))
    words = str(project.layout.path(Prepared("grammar-smoke-trees")).with_name("test.tok.en"))
    assert reprise(["parse", RUN, words, *SMOKE]) == 0
    trees = capsys.readouterr().out
    assert trees == Path(project.layout.trees(score)).read_text() and trees.count("\n") > 10
    assert reprise(["score", RUN, *SMOKE]) == 0
    metrics = json.loads(project.layout.path(score).read_text())["metrics"]
    for line in filter(str.strip, capsys.readouterr().out.splitlines()):
        assert float(line.split()[1]) == pytest.approx(metrics[line.split()[0]]["value"], abs=0.006)
    assert reprise(["pack", RUN, "packed", *SMOKE]) == 0
    assert reprise(["parse", "packed", words]) == 0
    assert capsys.readouterr().out == trees

"""Trees of `reprise parse` equal those that the workflow scored, and are valid for any words."""

import json
from pathlib import Path

import pytest
from finished_project import finished_project
from real_project import real_project

from pipeline.core.artifacts import Prepared, Score
from pipeline.data.trees.linearisation import rebuild
from pipeline.data.trees.trees import parse_tree, words
from reprise.__main__ import main as reprise
from reprise.find_runs import resolve_run
from reprise.model_input import Preparation

RUN, SMOKE = "attention/parsing/wsj", ["--set", "scale=smoke"]


TAGS = "(S (NP NN NN NN NN /NP . /S"


def test_rebuilt_tree_escapes_brackets_among_the_words():
    sentence = "two ( or a(b) ) ."
    tokens = Preparation(form="trees", src="en", tgt="brackets").tokens(sentence)
    written = str(rebuild(TAGS.split(), tokens.split(" "))[0])
    assert words(parse_tree(written, "the output")) == ["two", "-LRB-", "or", "a-LRB-b-RRB-", "-RRB-", "."]


def test_sentences_as_treebanks_write_them_stay_as_they_are():
    sentence = "-LRB- it 's 1\\/2 [ of ] { all } -RRB- ."
    assert Preparation(form="trees", src="en", tgt="brackets").tokens(sentence) == sentence


@pytest.mark.slow
def test_the_command_writes_the_trees_that_the_workflow_scored(tmp_path_factory, monkeypatch, capsys):
    project = real_project({"scale": "smoke"})
    score = Score(resolve_run(project, RUN), "scores", "parsing", "test")
    monkeypatch.chdir(finished_project(tmp_path_factory, [score], is_shrunk=False))
    tokens = str(project.layout.path(Prepared("grammar-smoke-trees")).with_name("test.tok.en"))
    assert reprise(["parse", RUN, tokens, *SMOKE]) == 0
    trees = capsys.readouterr().out
    assert trees == Path(project.layout.trees(score)).read_text() and trees.count("\n") > 10
    assert reprise(["score", RUN, *SMOKE]) == 0
    metrics = json.loads(project.layout.path(score).read_text())["metrics"]
    for line in filter(str.strip, capsys.readouterr().out.splitlines()):
        assert float(line.split()[1]) == pytest.approx(metrics[line.split()[0]]["value"], abs=0.006)
    assert reprise(["pack", RUN, "packed", *SMOKE]) == 0
    assert reprise(["parse", "packed", tokens]) == 0
    assert capsys.readouterr().out == trees

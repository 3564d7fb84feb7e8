"""Any output of a model becomes parses and a score file; the test set is checked."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
import yaml
from treebank_records import treebank_record

from pipeline.core.digests import sha256_file
from pipeline.core.errors import UserError
from pipeline.data.trees.linearisation import linearise, rebuild
from pipeline.data.trees.trees import parse_tree, words
from pipeline.metrics import metric_named, read_statistics
from pipeline.metrics.brackets import sentence_counts
from pipeline.outputs.score import score_parses

SYMBOLS = ["(S", "(NP", "(VP", "/S", "/NP", "/VP", "NN", "VB", "."]


def write_lines(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def random_tree(rng: Random):
    sentence = [f"w{number}" for number in range(rng.randrange(1, 9))]
    return rebuild(rng.choices(SYMBOLS, k=30), sentence)[0]


@pytest.fixture
def gold(tmp_path):
    """Random gold trees, prepared below tmp_path."""
    rng = Random(1)
    trees = [random_tree(rng) for _ in range(30)]
    sentences = [" ".join(words(tree)) for tree in trees]
    symbols = [" ".join(linearise(tree)) for tree in trees]
    files = {"test.trees": map(str, trees), "test.tok.en": sentences, "train.tok.en": sentences}
    for name, lines in (files | {"train.tok.brackets": symbols}).items():
        write_lines(tmp_path / "prepared" / name, lines)
    return trees


def score(tmp_path: Path, sequences: list[str], lines: int = 30) -> dict:
    """Score a parser's output in folder `a`, and return the score file."""
    generator = {"domain": "film", "sizes": {"train": 1, "dev": 1, "test": lines}, "seed": 1}
    expected = {"test": {"lines": lines}}
    dataset = treebank_record(kind="grammar-treebank", generator=generator, expected=expected)
    (path := tmp_path / "toy-trees.yaml").write_text(yaml.safe_dump(dataset), encoding="utf-8")
    sequences_file, out = write_lines(tmp_path / "a/test.tok", sequences), tmp_path / "a/test.json"
    read = {"dataset": path, "prepared": tmp_path / "prepared", "sequences": sequences_file}
    trees = {"trees": tmp_path / "a/test.trees", "aligned_trees": tmp_path / "a/test.aligned.trees"}
    score_parses(**read, **trees, out=out)
    return json.loads(out.read_text(encoding="utf-8"))


def test_the_gold_sequences_score_100(tmp_path, gold):
    record = score(tmp_path, [" ".join(linearise(tree)) for tree in gold])
    assert {name: metric["value"] for name, metric in record["metrics"].items()} == dict.fromkeys(
        ("f1", "f1_40", "f1_aligned", "tagging", "balanced", "well_formed"), 100.0
    )
    assert (record["test_set"], record["lines"], record["repairs"]) == ("toy-test", 30, {})
    assert record["references"] == sha256_file(tmp_path / "prepared/test.trees")
    for made in ("test.trees", "test.aligned.trees"):
        assert (tmp_path / "a" / made).read_bytes() == (tmp_path / "prepared/test.trees").read_bytes()


def test_any_sequences_are_scored_over_all_sentences(tmp_path, gold):
    rng = Random(2)
    sequences = [" ".join(rng.choices([*SYMBOLS, "<unk>"], k=rng.randrange(25))) for _ in gold]
    record = score(tmp_path, sequences)
    parses = [parse_tree(line, "") for line in (tmp_path / "a/test.trees").read_text().split("\n")[:-1]]
    assert [words(tree) for tree in parses] == [words(tree) for tree in gold]
    totals = np.sum([sentence_counts(*pair)[:3] for pair in zip(gold, parses, strict=True)], axis=0)
    assert record["metrics"]["f1"]["value"] == pytest.approx(float(metric_named("f1").total(totals)))
    assert record["metrics"]["f1"]["low"] < record["metrics"]["f1"]["value"] < record["metrics"]["f1"]["high"]
    balanced = [
        rebuild(symbols.split(), words(tree))[1].balanced for symbols, tree in zip(sequences, gold, strict=True)
    ]
    assert record["metrics"]["balanced"]["value"] == pytest.approx(100 * np.mean(balanced))
    assert record["repairs"]["missing_closers"] > 0
    for name, metric in record["metrics"].items():
        statistics = read_statistics(tmp_path / "a/test.json", name)
        assert len(statistics) == 30
        assert metric["value"] == pytest.approx(float(metric_named(name).total(statistics.sum(axis=0))))


@pytest.mark.parametrize("line", ["", "<unk>", "<unk> <unk> <unk>", "(", "/", "(S", "/S /S", "( ) ("])
def test_sequences_without_a_phrase_are_scored(tmp_path, gold, line):
    record = score(tmp_path, [line] * len(gold))
    for name, metric in record["metrics"].items():
        assert 0 <= metric["low"] <= metric["value"] <= metric["high"] <= 100, name
    for made in ("test.trees", "test.aligned.trees"):
        parses = [parse_tree(one, "") for one in (tmp_path / "a" / made).read_text().split("\n")[:-1]]
        assert [words(tree) for tree in parses] == [words(tree) for tree in gold]


@pytest.mark.parametrize(
    ("outputs", "lines", "message"),
    [(29, 30, r"test\.tok: 29 lines, but the test set has 30"), (30, 31, "has 30 pairs, but toy-trees test has 31")],
)
def test_outputs_of_another_test_set_are_refused(tmp_path, gold, outputs, lines, message):
    with pytest.raises(UserError, match=message):
        score(tmp_path, ["NN"] * outputs, lines)


def test_words_of_another_test_set_are_refused(tmp_path, gold):
    write_lines(tmp_path / "prepared/test.tok.en", [*(" ".join(words(tree)) for tree in gold[:-1]), "other words"])
    with pytest.raises(UserError, match=r"test\.tok\.en: line 30 is not the sentence of the gold tree"):
        score(tmp_path, ["NN"] * 30)


def test_a_gold_tree_that_is_none_is_named_by_its_line(tmp_path, gold):
    write_lines(tmp_path / "prepared/test.trees", [str(gold[0]), "(S (NN", *map(str, gold[2:])])
    with pytest.raises(UserError, match=r"test\.trees: line 2"):
        score(tmp_path, ["NN"] * 30)

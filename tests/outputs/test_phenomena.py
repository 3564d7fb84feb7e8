"""Phenomena are found where they are right, and missed where a word or the order is wrong."""

import json
import random
import re
from pathlib import Path

import pytest
from grammar_sentences import generate
from toy_corpus import record

from pipeline.core.errors import UserError
from pipeline.data.text.subwords import train
from pipeline.data.trees.trees import parse_tree
from pipeline.metrics import read_statistics
from pipeline.metrics.phenomena import clauses, contains, in_order, reorderings
from pipeline.outputs.score_text import score_phenomena

TREE = parse_tree(
    "(TOP (S (NP (NP (DT The) (NN dog)) (SBAR (WHNP (WDT that)) (S (NP (DT the) (NN writer)) (VP (VBD found)))))"
    " (VP (MD will) (VP (VB carry) (NP (DT a) (NN ball)) (PP (IN in) (NP (DT the) (NN house))) (PP (TO to) (NP (NNP"
    " Anna))))) (. .)))",
    "toy",
)


def test_heads_of_clauses_and_of_what_chinese_orders_otherwise():
    assert list(clauses(TREE)) == [["dog", "carry", "ball"]]
    assert list(reorderings(TREE)) == [["dog", "found"], ["carry", "house"]]


@pytest.mark.parametrize(
    ("words", "found"), [("the dog will carry a ball", True), ("a ball the dog carry", False), ("the dog carry", False)]
)
def test_order_counts(words, found):
    assert in_order(words.split(), ["dog", "carry", "ball"]) is found


def test_a_name_has_to_stand_there_in_one_piece():
    assert contains(["then", "anna", "keller", "came"], ["anna", "keller"])
    assert not contains(["anna", "and", "keller"], ["anna", "keller"])


DATASET = record(
    **{"src": "zh", "tgt": "en", "segmenter": "jieba", "lowercase": True, "test_set": "toy"},
    generator={"domain": "film", "sizes": {"train": 1, "dev": 1, "test": 120}, "seed": 5},
    cleaning={"max_tokens": 50, "max_ratio": 9},
    expected={"test": {"lines": 120}},
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus folder of the grammar: what `phenomena` reads."""
    folder = tmp_path_factory.mktemp("corpus")
    sentences = generate("film", 120, 5)
    english = [re.sub(r"([,.?])", r" \1", sentence.en.lower()) for sentence in sentences]
    chinese = [" ".join(sentence.zh_words).lower() for sentence in sentences]
    for side, lines in (("subwords.tgt", english), ("subwords", chinese)):
        words = {word for line in lines for word in line.split()}
        (folder / f"{side}.model").write_bytes(train("word", iter(lines), len(words) + 4, "toy"))
    with open(folder / "test.phenomena.jsonl", "w", encoding="utf-8") as handle:
        for line, sentence in enumerate(sentences):
            handle.write(json.dumps({"line": line, **sentence.phenomena, "tree": sentence.tree}) + "\n")
    (folder / "prepared").mkdir()
    (folder / "toy.yaml").write_text(json.dumps(DATASET))
    return folder, english


def score(folder, dataset, lines):
    (folder / "hyp.tok").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    score_phenomena(dataset=dataset, corpus=folder, split="test", tokenised=folder / "hyp.tok", out=folder / "out.json")


def count(folder, lines):
    score(folder, folder / "toy.yaml", lines)
    found = json.loads((folder / "out.json").read_text())
    names = found["metrics"]
    return {name: read_statistics(folder / "out.json", name).sum(axis=0).tolist() for name in names}, found


def test_the_references_themselves_are_right_in_everything(corpus):
    counts, found = count(*corpus)
    assert all(successes == trials > 0 for successes, trials in counts.values())
    assert found["test_set"] == "toy" and found["metrics"]["clauses"]["value"] == 100
    assert counts["rare_names"][1] < counts["names"][1]


def test_shuffled_words_keep_names_of_one_word_and_lose_order(corpus):
    folder, english = corpus
    shuffled = [" ".join(random.Random(0).sample(line.split(), len(line.split()))) for line in english]
    counts, _ = count(folder, shuffled)
    shares = {name: successes / trials for name, (successes, trials) in counts.items()}
    assert shares["idioms"] < 0.2 and shares["clauses"] < 0.6 < shares["names"]


@pytest.mark.parametrize("line", ["", "<unk>", "<unk> <unk> <unk>"])
def test_translations_without_a_word_have_no_phenomenon(corpus, line):
    folder, english = corpus
    counts, found = count(folder, [line] * len(english))
    assert all(successes == 0 < trials for successes, trials in counts.values())
    assert all(metric["value"] == 0 for metric in found["metrics"].values())


def test_other_than_as_many_lines_is_refused(corpus):
    folder, english = corpus
    with pytest.raises(UserError, match="119 lines, but the test set has 120"):
        score(folder, folder / "toy.yaml", english[:-1])


@pytest.mark.parametrize("name", ["grammar-smoke-en-de", "grammar-smoke-en-fr", "news-zh-en"])
def test_phenomena_refuse_text_not_from_the_grammar(corpus, name):
    folder, english = corpus
    dataset = Path(__file__).parents[2] / f"workflow/datasets/{name}.yaml"
    with pytest.raises(UserError, match=f"{name}.yaml: is not written by the grammar into English"):
        score(folder, dataset, english)

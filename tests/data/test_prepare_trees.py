"""Treebanks become sentences and symbols, with a vocabulary each, and every count is reported."""

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from random_trees import annotated, random_tree
from treebank_records import grammar_treebank, make_treebank

from pipeline.core import disk
from pipeline.core.errors import UserError
from pipeline.core.records.corpus import PreparedTrees
from pipeline.data.batches.parallel_batches import ParallelSplit
from pipeline.data.text.encode import encode
from pipeline.data.text.subwords import learn_vocabularies
from pipeline.data.text.vocabulary import load_vocabularies
from pipeline.data.trees.linearisation import Repairs, linearise, rebuild
from pipeline.data.trees.prepare_trees import add_errors, prepare_trees
from pipeline.data.trees.trees import Tree, clean, parse_tree, words
from pipeline.metrics.brackets import F1, Parses

SPLITS = ("train", "dev", "test")
SOURCE = {"parts": [{"package": "p", "files": ["f"]}]}
PLAIN = {"kind": "treebank", "sources": {}, "packages": {"p": "toy"}, "otherwise": "toy"}
PLAIN["splits"] = dict.fromkeys(SPLITS, SOURCE)


def write_raw(corpus, rng: Random, count: int = 60) -> dict[str, list[Tree]]:
    """Write raw/<split>.trees of random annotated trees, and return them cleaned."""
    trees = {split: [random_tree(rng) for _ in range(count)] for split in SPLITS}
    (corpus / "raw").mkdir(parents=True)
    for split in SPLITS:
        lines = [" ".join(annotated(tree, rng).split("\n")) for tree in trees[split]]
        (corpus / f"raw/{split}.trees").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return trees


def read(path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_sentences_symbols_and_trees_stand_line_by_line(tmp_path, seed):
    trees = write_raw(tmp_path, Random(seed))
    report = prepare_trees(make_treebank(**PLAIN), tmp_path)
    for split in SPLITS:
        assert read(tmp_path / f"prepared/{split}.tok.en") == [" ".join(words(tree)) for tree in trees[split]]
        assert read(tmp_path / f"prepared/{split}.tok.brackets") == [" ".join(linearise(tree)) for tree in trees[split]]
        assert read(tmp_path / f"prepared/{split}.trees") == [str(tree) for tree in trees[split]]
        record = report.splits[split]
        assert record.read == record.kept == 60
        assert record.src_words == sum(len(words(tree)) for tree in trees[split])
        assert record.words_percentiles["100"] == max(len(words(tree)) for tree in trees[split])
        assert record.symbols_percentiles["100"] == max(len(linearise(tree)) for tree in trees[split])
        assert record.labels["TOP"] == 60 and sum(record.tags.values()) == record.src_words
    assert PreparedTrees.read(tmp_path / "prepared/report.json") == report


def learnt(corpus, seed=1):
    """Prepare random trees and learn their vocabularies; return the dataset and the trees."""
    trees, dataset = write_raw(corpus, Random(seed)), make_treebank(**PLAIN)
    prepare_trees(dataset, corpus)
    learn_vocabularies(dataset, corpus)
    return dataset, trees


def test_symbols_are_never_split_and_come_back_from_their_ids(tmp_path, seed):
    dataset, trees = learnt(tmp_path, seed)
    record = encode(dataset, tmp_path, processes=1)
    src, tgt = load_vocabularies(tmp_path)
    assert record.vocab_sizes == (len(src), len(tgt)) and len(src) == 60 != len(tgt)
    assert record.splits["train"].tgt_unknown == record.splits["train"].src_unknown == 0
    pairs = ParallelSplit(tmp_path / "encoded", "train")
    for number, tree in enumerate(trees["train"]):
        assert len(pairs.tgt[number]) == len(linearise(tree))
        symbols, sentence = tgt.decode([pairs.tgt[number]])[0], src.decode([pairs.src[number]])[0]
        assert rebuild(symbols.split(), sentence.split(" ")) == (tree, Repairs())


def test_shared_vocabulary_removes_an_old_target_vocabulary(tmp_path):
    dataset, _ = learnt(tmp_path)
    joint = make_treebank(**PLAIN, tgt_subwords=None, subwords=dataset.subwords.model_dump())
    learn_vocabularies(joint, tmp_path)
    src, tgt = load_vocabularies(tmp_path)
    assert src is tgt
    assert encode(joint, tmp_path, 1).vocab_sizes == (len(src), len(src))


def test_only_training_trees_without_words_are_left_out(tmp_path):
    write_raw(tmp_path, Random(1))
    empty = "( (S (NP-SBJ (-NONE- *))) )\n"
    with open(tmp_path / "raw/train.trees", "a", encoding="utf-8") as lines:
        lines.write(empty + "( (NP (NN Xpd TTD)) )\n")
    record = prepare_trees(make_treebank(**PLAIN), tmp_path).splits["train"]
    assert (record.read, record.kept, record.rejected) == (62, 61, {"no words": 1})
    assert record.repaired == {"tag over several words": 1}
    with open(tmp_path / "raw/dev.trees", "a", encoding="utf-8") as lines:
        lines.write(empty)
    with pytest.raises(UserError, match=r"dev\.trees: line 61: the cleaned tree has no words"):
        prepare_trees(make_treebank(**PLAIN), tmp_path)


def test_a_disk_without_room_for_the_trees_is_named_first(tmp_path, monkeypatch):
    write_raw(tmp_path, Random(1))
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: SimpleNamespace(free=disk.SPARE_BYTES + 1000))
    with pytest.raises(UserError, match="prepared trees will need"):
        prepare_trees(make_treebank(**PLAIN), tmp_path)
    assert not (tmp_path / "prepared").exists()


def test_faulty_tree_is_reported_by_line_and_missing_by_stage(tmp_path):
    with pytest.raises(UserError, match=r"train\.trees: no such file; run the stage `collect-trees` or `generate`"):
        prepare_trees(make_treebank(**PLAIN), tmp_path)
    write_raw(tmp_path, Random(1))
    with open(tmp_path / "raw/train.trees", "a", encoding="utf-8") as lines:
        lines.write("(NP foo (NN bar))\n")
    with pytest.raises(UserError, match=r"train\.trees: line 61: not a tree at '\( NP foo'"):
        prepare_trees(make_treebank(**PLAIN), tmp_path)
    (tmp_path / "raw/train.trees").write_text("(NP (NN bar))\n(NP (/NN bar))\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"train\.trees: line 2: the tag '/NN' of 'bar' looks like a bracket"):
        prepare_trees(make_treebank(**PLAIN), tmp_path)


def test_parser_errors_occur_only_after_the_gold_trees(tmp_path):
    rng = Random(1)
    trees = {split: [random_tree(rng) for _ in range(count)] for split, count in zip(SPLITS, (40, 1, 1), strict=True)}
    for split, drawn in trees.items():
        (tmp_path / f"{split}.trees").write_text("".join(f"{tree}\n" for tree in drawn), encoding="utf-8")
    prepare_trees(grammar_treebank({"parser": "toy", "after": 15, "errors": 1.0, "seed": 1}), tmp_path)
    texts = {split: read(tmp_path / f"prepared/{split}.trees") for split in SPLITS}
    prepared = {split: [clean(parse_tree(line, "")) for line in lines] for split, lines in texts.items()}
    found, gold = prepared.pop("train"), trees.pop("train")
    assert found[:15] == gold[:15] and prepared == trees
    assert np.mean([a != b for a, b in zip(found[15:], gold[15:], strict=True)]) > 0.3
    assert [words(tree) for tree in found] == [words(tree) for tree in gold]


def test_an_error_is_one_bracket_wrong_and_one_missing():
    gold = parse_tree("(TOP (S (NP (NN a)) (VP (VB b) (NP (NN c) (NN d)))))", "")
    # NP is one part of two words: with errors everywhere its last word goes to VP, VP's then last part to S, …
    wrong = add_errors(gold, 1.0, Random(1))
    assert str(wrong) == "(TOP (S (NP (NN a)) (VP (VB b) (NP (NN c)))) (NN d))"
    assert add_errors(gold, 0.0, Random(1)) == gold
    assert F1.total(F1.statistics(Parses([gold], [wrong], [], [wrong])).sum(axis=0)) < 100

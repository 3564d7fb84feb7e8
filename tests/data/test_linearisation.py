"""Trees survive linearisation, and any symbols become a tree over exactly the words of the sentence."""

import time
from random import Random

import pytest
from random_trees import LABELS, TAGS, random_tree

from pipeline.core.errors import UserError
from pipeline.data.trees.linearisation import Repairs, linearise, rebuild
from pipeline.data.trees.trees import TOP, Tree, parse_tree, words


def repaired(symbols: str, sentence: str) -> tuple[str, dict[str, int]]:
    """Return the tree and the repairs that are not zero."""
    tree, repairs = rebuild(symbols.split(), sentence.split())
    return str(tree), {kind: count for kind, count in vars(repairs).items() if count}


def test_the_symbols_of_the_paper_s_form():
    tree = parse_tree("(TOP (S (NP (PRP We)) (VP (VBP agree)) (. .)))", "here")
    assert " ".join(linearise(tree)) == "(S (NP PRP /NP (VP VBP /VP . /S"


def test_random_trees_come_back_without_repair(seed):
    rng = Random(seed)
    for _ in range(300):
        tree = random_tree(rng)
        again, repairs = rebuild(linearise(tree), words(tree))
        assert again == tree
        assert repairs == Repairs() and repairs.balanced and not repairs.any


def test_any_symbols_rebuild_to_a_tree_over_exactly_the_words(seed):
    rng = Random(seed)
    alphabet = [f"({label}" for label in LABELS] + [f"/{label}" for label in LABELS] + list(TAGS)
    alphabet += ["<unk>", "(", "/", "", "()", "(S)", "a b", "/TOP", "(TOP"]
    for _ in range(500):
        symbols = rng.choices(alphabet, k=rng.randrange(60))
        sentence = [f"w{number}" for number in range(rng.randrange(20))]
        tree, repairs = rebuild(symbols, sentence)
        assert words(tree) == sentence
        assert tree.label == TOP
        if sentence:
            assert parse_tree(str(tree), "here") == tree  # brackets match, and every phrase holds a word
            assert rebuild(linearise(tree), sentence) == (tree, Repairs())
        assert repairs.any == (linearise(tree) != symbols)


def test_changed_symbols_are_found_to_be_changed(seed):
    rng = Random(seed)
    for _ in range(300):
        tree = random_tree(rng)
        symbols = linearise(tree)
        closers = [place for place, symbol in enumerate(symbols) if symbol.startswith("/")]
        if closers:
            del symbols[rng.choice(closers)]
            again, repairs = rebuild(symbols, words(tree))
            assert not repairs.balanced and words(again) == words(tree)


@pytest.mark.parametrize(
    ("symbols", "sentence", "tree", "repairs"),
    [
        ("(S (NP NN /NP", "a", "(TOP (S (NP (NN a))))", {"missing_closers": 1}),
        # /S closes the NP inside it
        ("(S (NP NN /S", "a", "(TOP (S (NP (NN a))))", {"missing_closers": 1}),
        # nothing open is a VP
        ("(S NN /VP NN /S", "a b", "(TOP (S (NN a) (NN b)))", {"surplus_closers": 1}),
        ("(S NN /S /S", "a", "(TOP (S (NN a)))", {"surplus_closers": 1}),
        # a word too many for the tags goes to the end of the last phrase, whatever that is
        ("(S (NP NN /NP . /S", "a b c", "(TOP (S (NP (NN a)) (. b) (XX c)))", {"missing_tags": 1}),
        ("NN", "a b", "(TOP (NN a) (XX b))", {"missing_tags": 1}),
        ("", "a", "(TOP (XX a))", {"missing_tags": 1}),
        # a tag too many is left out, and with it the phrase that it leaves empty
        ("(S NN (NP NN /NP /S", "a", "(TOP (S (NN a)))", {"surplus_tags": 1, "empty_phrases": 1}),
        ("(S (NP /NP NN /S", "a", "(TOP (S (NN a)))", {"empty_phrases": 1}),
        ("(S NN (NP (VP", "a", "(TOP (S (NN a)))", {"missing_closers": 3, "empty_phrases": 2}),
        ("( (S NN () /S /", "a", "(TOP (S (NN a)))", {"foreign_symbols": 3}),
    ],
)
def test_each_repair_by_hand(symbols, sentence, tree, repairs):
    assert repaired(symbols, sentence) == (tree, repairs)


def test_an_output_as_deep_as_beam_search_allows_is_rebuilt():
    symbols = ["(S"] * 3000 + ["NN"]
    tree, repairs = rebuild(symbols, ["a"])
    assert repairs.missing_closers == 3000
    assert str(tree).count("(S ") == 3000


@pytest.mark.parametrize("tag", ["(", "/X"])
def test_a_tag_that_reads_as_a_bracket_is_refused(tag):
    with pytest.raises(UserError, match="looks like a bracket"):
        linearise(Tree(TOP, (Tree(tag, word="a"),)))


def test_closers_without_an_opener_take_linear_time():
    depth = 100_000
    began = time.process_time()
    tree, repairs = rebuild(["(A"] * depth + ["/B"] * depth, ["word"])
    assert time.process_time() - began < 5
    assert repairs.surplus_closers == repairs.missing_closers == depth and words(tree) == ["word"]

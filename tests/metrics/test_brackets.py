"""Labelled bracketing F1 against cases counted by hand by the rules of EVALB (COLLINS.prm)."""

import numpy as np
import pytest

from pipeline.core.errors import UserError
from pipeline.data.trees.trees import clean, parse_tree
from pipeline.metrics import metric_named
from pipeline.metrics.brackets import F1, Parses, precision, recall, sentence_counts


def tree(text: str):
    return clean(parse_tree(text, "here"))


def parsed(gold: list[str], parses: list[str]) -> Parses:
    trees = [*map(tree, parses)]
    return Parses([*map(tree, gold)], trees, [], trees)


GOLD = "(TOP (S (NP (DT The) (NN cat)) (VP (VBD saw) (NP (DT a) (NN bird)) (PP (IN in) (NP (NNS trees)))) (. .)))"
LOW = "(TOP (S (NP (DT The) (NN cat)) (VP (VBD saw) (NP (NP (DT a) (NN bird)) (PP (IN in) (NP (NNS trees)))))(. .)))"
FLAT = "(TOP (S (DT The) (NN cat) (VBD saw) (DT a) (NN bird) (IN in) (NNS trees) (. .)))"
DASHED = "(TOP (S (NP (NN rain)) (PRN (: --) (, ,))))"
QUOTED = "(TOP (S (`` ``) (PRN (-LRB- -LRB-) (NP (NN rain)) (-RRB- -RRB-)) ('' '')))"


CASES = [
    # 6 brackets: S(0,7) NP(0,2) VP(2,7) NP(3,5) PP(5,7) NP(6,7); the stop is deleted, TOP is none
    ("the same tree", GOLD, GOLD, (6, 6, 6, 7, 7)),
    # the PP hangs below the object: NP(3,7) is new and matches nothing, NP(3,5) is still there
    ("a part attached too low", GOLD, LOW, (6, 6, 7, 7, 7)),
    # PP is called ADVP: 5 of 6 match
    ("a wrong label", GOLD, GOLD.replace("(PP ", "(ADVP "), (5, 6, 6, 7, 7)),
    # a part-of-speech tag is no bracket: all 6 match, 6 of 7 tags do
    ("a wrong tag", GOLD, GOLD.replace("(NNS trees)", "(NN trees)"), (6, 6, 6, 6, 7)),
    # the parse calls the stop a noun: the gold tree says that it is deleted, so that S ends at 7 in both
    ("punctuation with a wrong tag", GOLD, GOLD.replace("(. .)", "(NN .)"), (6, 6, 6, 7, 7)),
    # the parse calls a word punctuation: it stays, as the gold tree says, with its tag wrong
    ("a word taken for punctuation", GOLD, GOLD.replace("(NNS trees)", "(. trees)"), (6, 6, 6, 6, 7)),
    # the stop inside the VP: VP still ends at 7, since the stop is deleted
    ("punctuation hung elsewhere", GOLD, GOLD.replace(") (. .)))", " (. .))))"), (6, 6, 6, 7, 7)),
    # a flat parse: S(0,7) alone
    ("a flat parse", GOLD, FLAT, (1, 6, 1, 7, 7)),
    # ADVP and PRT are one label: S VP ADVP, S VP PRT, 3 of 3
    ("ADVP for PRT", "(TOP (S (VP (VB Go) (ADVP (RP on)))))", "(TOP (S (VP (VB Go) (PRT (RP on)))))", (3, 3, 3, 2, 2)),
    # two NPs over one span, one of them in the parse: S NP NP against S NP, 2 match
    ("a unary chain of one label", "(TOP (S (NP (NP (NN rain)))))", "(TOP (S (NP (NN rain))))", (2, 3, 2, 1, 1)),
    # the other way round the surplus NP is one of precision: 2 match of 2 gold and 3 parsed
    ("a surplus unary", "(TOP (S (NP (NN rain))))", "(TOP (S (NP (NP (NN rain)))))", (2, 2, 3, 1, 1)),
    # a phrase of nothing but punctuation goes with it: S(0,1) NP(0,1) alone in both
    ("a phrase of punctuation", DASHED, DASHED.replace("(PRN (: --) (, ,))", "(: --) (, ,)"), (2, 2, 2, 1, 1)),
    # brackets, quotes apart, are words: -LRB- stays, `` and '' go: S(0,3) PRN(0,3) NP(1,2)
    ("which marks are punctuation", QUOTED, QUOTED, (3, 3, 3, 3, 3)),
    # no bracket at all in the parse of an empty output
    ("no bracket", "(TOP (S (NN rain)))", "(TOP (XX rain))", (0, 1, 0, 0, 1)),
]


@pytest.mark.parametrize(("case", "gold", "parse", "expected"), CASES)
def test_counts_by_hand(case, gold, parse, expected):
    assert sentence_counts(tree(gold), tree(parse)) == expected


def test_f1_sums_over_sentences_before_it_divides():
    # 6 of 6 and 7, then 1 of 6 and 1: matched 7, gold 12, parsed 8: recall 7/12, precision 7/8, F1 14/20
    parses = parsed([GOLD, GOLD], [LOW, FLAT])
    totals = F1.statistics(parses).sum(axis=0)
    assert totals.tolist() == [7, 12, 8]
    assert F1.total(totals) == pytest.approx(100 * 14 / 20)
    assert recall(totals) == pytest.approx(100 * 7 / 12)
    assert precision(totals) == pytest.approx(100 * 7 / 8)
    tagging = metric_named("tagging")
    assert tagging.total(tagging.statistics(parses).sum(axis=0)) == 100


def test_the_cut_off_counts_punctuation():
    # 39 words and the stop make 40, which counts; 40 words and the stop make 41, which doesn't
    def sentence(length):
        return tree(f"(TOP (S {'(NN a) ' * length}(. .)))")

    trees = [sentence(39), sentence(40)]
    parses = Parses(trees, trees, [], trees)
    assert F1.statistics(parses).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert metric_named("f1_40").statistics(parses).tolist() == [[1, 1, 1], [0, 0, 0]]


def test_aligned_f1_alone_reads_trees_made_by_alignment():
    good, bad = [tree(GOLD)], [tree(FLAT)]
    aligned, in_order = Parses(good, bad, [], good), Parses(good, good, [], bad)
    by_alignment = metric_named("f1_aligned")
    assert by_alignment.statistics(aligned).tolist() == F1.statistics(in_order).tolist() == [[6, 6, 6]]
    assert by_alignment.statistics(in_order).tolist() == F1.statistics(aligned).tolist() == [[1, 6, 1]]


def test_bracket_score_without_brackets_is_zero():
    assert F1.total(np.zeros(3)) == 0
    assert F1.total(np.array([[0, 0, 0], [1, 2, 2]])).tolist() == [0, 50]


def test_trees_over_other_words_are_refused():
    """The message quotes the first 60 characters of both trees."""
    gold, parse = (f"(TOP {' '.join(f'(NN {letter * 9})' for letter in letters)})" for letters in ("abcdef", "abcdeg"))
    with pytest.raises(UserError) as refused:
        sentence_counts(tree(gold), tree(parse))
    assert str(refused.value) == f"a parse has other words than its gold tree: {parse[:60]!r}, {gold[:60]!r}"

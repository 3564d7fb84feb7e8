"""Penn bracketing is read in any layout, and what parsers need not predict is removed."""

import re

import pytest
from time_limit import within

from pipeline.core.errors import UserError
from pipeline.data.trees.trees import Tree, bracketings, clean, parse_tree


@pytest.mark.parametrize(
    ("annotated_text", "expected"),
    [
        # an empty top label, a trace that leaves its phrase empty, indices and function tags
        (
            "( (S (NP-SBJ-1 (PRP We)) (VP (VBP seem) (S (NP-SBJ-1 (-NONE- *)) (VP (TO to)))) (. .)) )",
            "(TOP (S (NP (PRP We)) (VP (VBP seem) (S (VP (TO to)))) (. .)))",
        ),
        # two phrases that are empty one inside the other, and gapping indices
        ("((S (NP=2 (NN a)) (SBAR (WHNP-1 (-NONE- 0)) (S (NP-SBJ-1 (-NONE- *T*))))))", "(TOP (S (NP (NN a))))"),
        # labels that begin with a hyphen stay, as do hyphens of tags and words
        ("(ROOT (PRN (-LRB- -LRB-) (NP-TMP (CD 1-2)) (-RRB- ])))", "(TOP (PRN (-LRB- -LRB-) (NP (CD 1-2)) (-RRB- ])))"),
        # other labels at the top, and none
        ("(TOP (S (NN a)))", "(TOP (S (NN a)))"),
        ("(S (NN a))", "(TOP (S (NN a)))"),
        ("(NN a)", "(TOP (NN a))"),
        # a title without a sentence, several parts at the top, a unary chain
        ("( (HEADING (NP (NN Abstract))) )", "(TOP (HEADING (NP (NN Abstract))))"),
        ("( (NP (NN a)) (. .) )", "(TOP (NP (NN a)) (. .))"),
        # CRAFT has five tags over two words
        ("((NP (NN Xpd TTD)))", "(TOP (NP (NN Xpd) (NN TTD)))"),
        # nothing but traces
        ("( (S (NP-SBJ (-NONE- *))) )", "(TOP)"),
    ],
)
def test_treebank_annotation_is_cleaned(annotated_text, expected):
    assert str(clean(parse_tree(annotated_text, "here"))) == expected


def test_a_tree_may_be_deeper_than_python_recurses():
    depth = 5000
    text = "(NP " * depth + "(NN a)" + ")" * depth
    tree = parse_tree(text, "here")
    assert str(tree) == text
    assert isinstance(clean(tree), Tree)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["(S (NN a))", "(S (NN b)"], "f: line 2: this tree is not closed by the end of the file, line 2"),
        (["(S (NN a)))"], r"f: line 1: '\)' stands outside a tree"),
        (["(S (NN a))", "", "hello (S (NN b))"], "f: line 3: 'hello' stands outside a tree"),
        (["<html>"], "f: line 1: '<html>' stands outside a tree; is this Penn bracketing"),
    ],
)
def test_a_file_that_is_no_bracketing_is_an_error_with_its_line(lines, message):
    with pytest.raises(UserError, match=message):
        list(bracketings(lines, "f"))


@pytest.mark.parametrize(
    "text", ["()", "(NP)", "(NP ())", "(NP foo (NN bar))", "(S (NP))", "(S ((NN a)))", "(NN a) (NN b)", "a", ""]
)
def test_a_node_without_label_or_word_is_an_error_that_shows_it(text):
    with pytest.raises(UserError, match="f: line 7"):
        parse_tree(text, "f: line 7")


@pytest.mark.parametrize(
    ("text", "near", "symbol"),
    [("(S (NN a) b)", "b )", 7), ("x (S (NN a))", "x ( S", 1), ("(S (NN a) ((VB b)))", ")", 13)],
)
def test_malformed_tree_is_quoted_from_its_first_bad_symbol(text, near, symbol):
    with pytest.raises(UserError, match=re.escape(f"here: not a tree at {near!r}, symbol {symbol}: {text}")):
        parse_tree(text, "here")


@pytest.mark.parametrize("unit", ["(S ", "(A b) ", "word "])
def test_tree_of_megabytes_is_refused_with_its_line(unit):
    count = 5_000_000 // len(unit)
    lines = ["(S (NN a))", "(S (NP ", *[unit * (count // 10)] * 10]
    refused = pytest.raises(UserError, match=r"f: line 2: this tree has over 200,000 symbols; is it closed\?")
    with within(5), refused:
        list(bracketings(lines, "f"))

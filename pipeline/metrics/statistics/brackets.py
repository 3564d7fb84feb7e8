"""Labelled bracketing F1 by the rules of EVALB with its COLLINS.prm, on which the printed scores rest.

Of a parse and the gold tree over the same words:

- TOP is no bracket, nor is a part-of-speech tag; ADVP and PRT are one label;
- words tagged as punctuation (`,` `:` `` `` `` `''` `.`) are deleted before spans are numbered, and with them the
  brackets that held nothing else; other marks (`-LRB-`, `$`, hyphens) stay;
- a bracket is right if the other tree has one of the same label and span; of n alike, at most n are right;
- matched, gold and parsed brackets are summed over all sentences: F1 = 2 matched / (gold + parsed).

EVALB deletes punctuation by each tree's own tags and throws out a sentence whose trees then differ in length. Here the
gold tree decides for both, so that no sentence is lost to a wrong tag.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.core.errors import UserError
from pipeline.data.trees.linearisation import Repairs
from pipeline.data.trees.trees import TOP, Tree, events, tags
from pipeline.metrics.statistics.metric import Inputs, Metric
from pipeline.metrics.statistics.rates import per_cent, rate

PUNCTUATION = frozenset({",", ":", "``", "''", "."})
SAME_LABEL = {"PRT": "ADVP"}
EVALB = "labelled-brackets|rules:EVALB-COLLINS|punctuation:deleted-by-gold-tags|TOP:deleted|ADVP=PRT"
"""In signatures."""

Bracket = tuple[str, int, int]


def brackets(tree: Tree, kept: list[bool]) -> Counter[Bracket]:
    """(label, first word, word after the last) of each phrase, in numbers of the words that are `kept`."""
    found: Counter[Bracket] = Counter()
    begins: list[int] = []
    word = position = 0
    for kind, node in events(tree):
        match kind:
            case "open":
                begins.append(position)
            case "tag":
                position += kept[word]
                word += 1
            case "close":
                begin = begins.pop()
                if begin < position and node.label != TOP:
                    found[SAME_LABEL.get(node.label, node.label), begin, position] += 1
    return found


def sentence_counts(gold: Tree, parse: Tree) -> tuple[int, int, int, int, int]:
    """Matched, gold and parsed brackets, right tags and words, of one sentence; punctuation aside.

    Raises:
        UserError: the trees are not over the same words.
    """
    gold_tags, parse_tags = tags(gold), tags(parse)
    if [tag.word for tag in gold_tags] != [tag.word for tag in parse_tags]:
        raise UserError(f"a parse is not over the words of its gold tree: {str(parse)[:60]!r}, {str(gold)[:60]!r}")
    kept = [tag.label not in PUNCTUATION for tag in gold_tags]
    right, found = brackets(gold, kept), brackets(parse, kept)
    same_tags = sum(a.label == b.label and keep for a, b, keep in zip(gold_tags, parse_tags, kept, strict=True))
    return (right & found).total(), right.total(), found.total(), same_tags, sum(kept)


@dataclass(frozen=True)
class Parses(Inputs):
    """Gold trees and parses over the same words, and what had to be done to make each parse of a model's output."""

    folder = "scores"
    forms = ("trees",)
    gold: list[Tree]
    parses: list[Tree]
    repairs: list[Repairs]
    aligned: list[Tree]
    """Parses of the same outputs, words set on tags by alignment (data/tag_alignment.py)."""

    @cached_property
    def counts(self) -> np.ndarray:
        """(N, 5) `sentence_counts`."""
        return counted(self.gold, self.parses)

    @property
    def lengths(self) -> np.ndarray:
        """(N,) words of each sentence, punctuation among them."""
        return np.array([len(tags(tree)) for tree in self.gold])


def counted(gold: list[Tree], parses: list[Tree]) -> np.ndarray:
    """(N, 5) `sentence_counts`."""
    return np.array([sentence_counts(*pair) for pair in zip(gold, parses, strict=True)])


def parse_rate(name: str, success: Callable[[Repairs], bool], signature: str) -> Metric[Parses]:
    """The share of outputs whose repairs are a success."""

    def statistics(parses: Parses) -> np.ndarray:
        return np.array([(success(repairs), 1) for repairs in parses.repairs], dtype=np.int64)

    return Metric(name, Parses, statistics, rate, lambda _: signature)


def f1(totals: np.ndarray) -> np.ndarray:
    """Percent, of (…, 3) summed matched, gold and parsed brackets; 0 where there are none."""
    return per_cent(2 * totals[..., 0], totals[..., 1] + totals[..., 2])


def recall(totals: np.ndarray) -> np.ndarray:
    return per_cent(totals[..., 0], totals[..., 1])


def precision(totals: np.ndarray) -> np.ndarray:
    return per_cent(totals[..., 0], totals[..., 2])

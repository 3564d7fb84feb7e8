"""Metrics of parses: labelled bracketing F1 by the rules of EVALB with its COLLINS.prm, tagging and repair rates.

The printed scores rest on EVALB. For a parse and the gold tree over the same words:

- TOP is no bracket, nor is a part-of-speech tag; ADVP and PRT are one label;
- words tagged as punctuation (`,` `:` `` `` `` `''` `.`) are deleted before spans are numbered, together with brackets
  that held nothing else; other marks (`-LRB-`, `$`, hyphens) stay;
- a bracket is right if the other tree has one of the same label and span; of n alike, at most n are right;
- matched, gold and parsed brackets are summed over all sentences: F1 = 2 matched / (gold + parsed).

EVALB deletes punctuation by each tree's own tags and skips a sentence whose trees then differ in length. Here the gold
tree decides for both, so that no sentence is lost to a wrong tag.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipeline.core.errors import UserError
from pipeline.data.trees.linearisation import Repairs
from pipeline.data.trees.trees import TOP, Tree, events, tags
from pipeline.metrics.metric import Metric, MetricInputs, percentage, success_rate

PUNCTUATION = frozenset({",", ":", "``", "''", "."})
SAME_LABEL = {"PRT": "ADVP"}
EVALB = "labelled-brackets|rules:EVALB-COLLINS|punctuation:deleted-by-gold-tags|TOP:deleted|ADVP=PRT"
"""Part of signatures."""
CUT_OFF = 40
"""Longest sentence that `f1_40` counts, in words with punctuation."""

Bracket = tuple[str, int, int]


def brackets(tree: Tree, kept: list[bool]) -> Counter[Bracket]:
    """Count brackets of a tree by label, first word and word after the last; words not `kept` are deleted before."""
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
    """Return matched, gold and parsed brackets, right tags, and words of one sentence, without punctuation.

    Raises:
        UserError: The words of the trees differ.
    """
    gold_tags, parse_tags = tags(gold), tags(parse)
    if [tag.word for tag in gold_tags] != [tag.word for tag in parse_tags]:
        raise UserError(f"a parse has other words than its gold tree: {str(parse)[:60]!r}, {str(gold)[:60]!r}")
    kept = [tag.label not in PUNCTUATION for tag in gold_tags]
    right, found = brackets(gold, kept), brackets(parse, kept)
    same_tags = sum(a.label == b.label and keep for a, b, keep in zip(gold_tags, parse_tags, kept, strict=True))
    return (right & found).total(), right.total(), found.total(), same_tags, sum(kept)


def corpus_counts(gold: list[Tree], parses: list[Tree]) -> np.ndarray:
    """Return the `sentence_counts` (N, 5) of every sentence."""
    return np.array([sentence_counts(*pair) for pair in zip(gold, parses, strict=True)])


@dataclass(frozen=True)
class Parses(MetricInputs):
    """Gold trees and parses over the same words, and the repairs that made each parse of a model's output."""

    folder = "scores"
    forms = ("trees",)
    gold: list[Tree]
    parses: list[Tree]
    repairs: list[Repairs]
    aligned: list[Tree]
    """Parses of the same outputs with words set on tags by alignment (pipeline/data/trees/linearisation.py)."""

    @cached_property
    def counts(self) -> np.ndarray:
        """Return `sentence_counts` of the parses, shape (N, 5)."""
        return corpus_counts(self.gold, self.parses)

    @property
    def lengths(self) -> np.ndarray:
        """Return the words of each sentence with punctuation, shape (N,)."""
        return np.array([len(tags(tree)) for tree in self.gold])


def f1(totals: np.ndarray) -> np.ndarray:
    """Compute labelled F1 in percent, shape (…,), from `totals` (…, 3): matched, gold and parsed brackets."""
    return percentage(2 * totals[..., 0], totals[..., 1] + totals[..., 2])


def recall(totals: np.ndarray) -> np.ndarray:
    """Compute labelled recall in percent, shape (…,), from `totals` (…, 3), as `f1`."""
    return percentage(totals[..., 0], totals[..., 1])


def precision(totals: np.ndarray) -> np.ndarray:
    """Compute labelled precision in percent, shape (…,), from `totals` (…, 3), as `f1`."""
    return percentage(totals[..., 0], totals[..., 2])


def short_sentence_brackets(parses: Parses) -> np.ndarray:
    """Return matched, gold and parsed brackets, shape (N, 3); zero for sentences longer than the cut-off."""
    return parses.counts[:, :3] * (parses.lengths <= CUT_OFF)[:, None]


def repair_rate(name: str, success: Callable[[Repairs], bool], signature: str) -> Metric[Parses]:
    """Build the metric that is the share of outputs with acceptable repairs.

    Args:
        name: Name of the metric.
        success: Says whether the repairs of an output are acceptable.
        signature: Says how the share is counted.

    Returns:
        Metric with statistics (N, 2): successes and trials.
    """

    def statistics(parses: Parses) -> np.ndarray:
        return np.array([(success(repairs), 1) for repairs in parses.repairs], dtype=np.int64)

    return Metric(name, Parses, statistics, success_rate, lambda _: signature)


F1 = Metric("f1", Parses, lambda parses: parses.counts[:, :3], f1, lambda _: f"{EVALB}|words:all")
F1_40 = Metric("f1_40", Parses, short_sentence_brackets, f1, lambda _: f"{EVALB}|words:{CUT_OFF}-at-most")
F1_ALIGNED = Metric(
    "f1_aligned",
    Parses,
    lambda parses: corpus_counts(parses.gold, parses.aligned)[:, :3],
    f1,
    lambda _: f"{EVALB}|words:all|tags:aligned",
)
"""F1 with words set on the tags that the model wrote by alignment in place of in order."""
TAGGING = Metric(
    "tagging",
    Parses,
    lambda parses: parses.counts[:, 3:],
    success_rate,
    lambda _: "part-of-speech-tags|punctuation:deleted-by-gold-tags",
)
BALANCED = repair_rate("balanced", lambda repairs: repairs.balanced, "outputs-with-matching-brackets")
WELL_FORMED = repair_rate("well_formed", lambda repairs: not repairs.any, "outputs-without-repair")
METRICS = (F1, F1_40, F1_ALIGNED, TAGGING, BALANCED, WELL_FORMED)

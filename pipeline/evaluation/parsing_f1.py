"""Labelled bracketing F1 by the rules of EVALB with its COLLINS.prm, on which the printed scores rest.

Of a parse and the gold tree over the same words:

- TOP is no bracket, nor is a part-of-speech tag; ADVP and PRT are one label;
- words tagged as punctuation (`,` `:` `` `` `` `''` `.`) are deleted before spans are numbered, and with them the
  brackets that held nothing else; other marks (`-LRB-`, `$`, hyphens) stay;
- a bracket is right if the other tree has one of the same label and span; of n alike, at most n are right;
- matched, gold and parsed brackets are summed over all sentences: F1 = 2 matched / (gold + parsed);
- the length of a sentence, for the score of those with at most 40 words, counts punctuation.

EVALB deletes punctuation by each tree's own tags and throws out a sentence whose trees then differ in length. Here the
gold tree decides for both, so that no sentence is lost to a wrong tag.
"""

from collections import Counter

import numpy as np

from pipeline.data.trees import TOP, Tree, events, tags
from pipeline.errors import UserError

PUNCTUATION = frozenset({",", ":", "``", "''", "."})
SAME_LABEL = {"PRT": "ADVP"}
CUT_OFF = 40
"""Words of the longest sentence that counts in `f1_40`."""

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


def bracket_statistics(gold: list[Tree], parses: list[Tree]) -> dict[str, np.ndarray]:
    """What the metrics of a test set are computed from, a row a sentence.

    Returns:
        f1, f1_40: (N, 3) matched, gold and parsed brackets, in f1_40 of the sentences of at most 40 words, else zero;
        exact, tagging: (N, 2) successes and trials.
    """
    counts = np.array([sentence_counts(*pair) for pair in zip(gold, parses, strict=True)])
    short = np.array([len(tags(tree)) <= CUT_OFF for tree in gold])
    matched, right, found = counts[:, 0], counts[:, 1], counts[:, 2]
    exact = (matched == right) & (matched == found)
    return {
        "f1": counts[:, :3],
        "f1_40": counts[:, :3] * short[:, None],
        "exact": np.stack([exact, np.ones_like(matched)], axis=1),
        "tagging": counts[:, 3:],
    }


def f1(totals: np.ndarray) -> np.ndarray:
    """Percent, of (…, 3) summed matched, gold and parsed brackets; 0 where there are none."""
    return per_cent(2 * totals[..., 0], totals[..., 1] + totals[..., 2])


def rate(totals: np.ndarray) -> np.ndarray:
    """Percent, of (…, 2) summed successes and trials."""
    return per_cent(totals[..., 0], totals[..., 1])


def recall(totals: np.ndarray) -> np.ndarray:
    return per_cent(totals[..., 0], totals[..., 1])


def precision(totals: np.ndarray) -> np.ndarray:
    return per_cent(totals[..., 0], totals[..., 2])


def per_cent(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return 100 * np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) != 0)

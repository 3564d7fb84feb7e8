"""Shares of names, idioms, clauses and reorderings of the embedded grammar that a translation has right.

Only the words named here are searched for. A paraphrase counts as wrong.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.data.trees.trees import Tree, tags
from pipeline.metrics.metric import Metric, MetricInputs, success_rate

NOUN_TAGS = ("NN", "NNS", "NNP", "PRP")
BEFORE_THE_VERB = frozenset({"in", "on", "at", "with"})
"""Prepositions of places, times and company, which stand before the verb in Chinese."""


@dataclass(frozen=True)
class GrammarSentence:
    """An English translation of a sentence of the embedded grammar, with what the grammar records about it."""

    words: list[str]
    record: dict[str, Any]
    """Record made by pipeline/grammar/corpus.py."""
    tree: Tree
    """Tree of the reference."""


@dataclass(frozen=True)
class GrammarTranslations(MetricInputs):
    """Translations of a test set of the embedded grammar."""

    folder = "phenomena"
    forms = ("sentences",)
    collector = "grammar"
    sentences: list[GrammarSentence]
    src_words: list[str]
    tgt_words: list[str]
    """Both vocabularies, most frequent word first."""
    lowercase: bool

    @cached_property
    def known_words(self) -> set[str]:
        """Return the words in both vocabularies."""
        return set(self.src_words).intersection(self.tgt_words)

    @cached_property
    def rare_words(self) -> set[str]:
        """Return the rarer half of the target vocabulary."""
        return set(self.tgt_words[len(self.tgt_words) // 2 :])

    def cased(self, words: Iterable[str]) -> list[str]:
        """Return words of the grammar in the case of the data."""
        return [word.lower() if self.lowercase else word for word in words]

    def names(self, sentence: GrammarSentence) -> list[list[str]]:
        """Return the names in a sentence all of whose words are known."""
        names = [self.cased(name["text"].split(" ")) for name in sentence.record["names"]]
        return [name for name in names if self.known_words.issuperset(name)]


def share_found(
    name: str,
    wanted: Callable[[GrammarTranslations, GrammarSentence], Iterable[list[str]]],
    is_in: Callable[[list[str], list[str]], bool],
    signature: str,
) -> Metric[GrammarTranslations]:
    """Build the metric that is the share of wanted word sequences found in the translations.

    Args:
        name: Name of the metric.
        wanted: Lists the word sequences that a translation should have.
        is_in: Says whether words contain a sequence.
        signature: Says how the share is counted.

    Returns:
        Metric with statistics (N, 2): sequences found, and sequences wanted.
    """

    def statistics(translations: GrammarTranslations) -> np.ndarray:
        rows = []
        for sentence in translations.sentences:
            sequences = [translations.cased(words) for words in wanted(translations, sentence)]
            rows.append((sum(is_in(sentence.words, words) for words in sequences), len(sequences)))
        return np.array(rows, dtype=np.int32)

    return Metric(name, GrammarTranslations, statistics, success_rate, lambda _: signature)


def contains(words: list[str], wanted: list[str]) -> bool:
    """Return whether the sequence `wanted` is a contiguous part of a sentence of `words`."""
    return any(words[i : i + len(wanted)] == wanted for i in range(len(words) - len(wanted) + 1))


def in_order(words: list[str], wanted: list[str]) -> bool:
    """Return whether the sequence `wanted`, perhaps with gaps, is part of a sentence of `words`."""
    rest = iter(words)
    return all(word in rest for word in wanted)


def rare_names(translations: GrammarTranslations, sentence: GrammarSentence) -> list[list[str]]:
    """List the words of each known name in a sentence that has a rare word."""
    return [name for name in translations.names(sentence) if translations.rare_words.intersection(name)]


def clauses(tree: Tree) -> Iterator[list[str]]:
    """Find the clauses that have a subject, a verb and an object.

    A time phrase takes the place of a missing object.

    Yields:
        Head words of subject, verb and object.
    """
    for phrase in phrases(tree):
        for subject, predicate in zip(phrase.children, phrase.children[1:], strict=False):
            if (subject.label, predicate.label) != ("NP", "VP"):
                continue
            verb, after = main_verb(predicate)
            objects = [part for part in after if part.label == "NP"]
            if verb and objects and (first := head_noun(subject)) and (last := head_noun(objects[0])):
                yield [first, verb, last]


def reorderings(tree: Tree) -> Iterator[list[str]]:
    """Find pairs of head words that stand in this order in English and in the other order in Chinese.

    A pair is a verb and the noun of its place, time or company, or a noun and the verb of its relative clause.

    Yields:
        The two words in English order.
    """
    for phrase in phrases(tree):
        if phrase.label == "VP":
            verb, after = main_verb(phrase, descend=False)
            places = (part for part in after if part.label == "PP" and tags(part)[0].word in BEFORE_THE_VERB)
            yield from ([verb, noun] for noun in map(head_noun, places) if verb and noun)
        for noun, relative in zip(phrase.children, phrase.children[1:], strict=False):
            if phrase.label == "NP" and (noun.label, relative.label) == ("NP", "SBAR"):
                head, verb = head_noun(noun), first_verb(relative)
                if head and verb:
                    yield [head, verb]


def phrases(tree: Tree) -> Iterator[Tree]:
    """Yield every phrase of a tree, outer ones first."""
    agenda = [tree]
    while agenda:
        phrase = agenda.pop()
        if not phrase.is_tag:
            yield phrase
            agenda.extend(reversed(phrase.children))


def main_verb(phrase: Tree, descend: bool = True) -> tuple[str | None, tuple[Tree, ...]]:
    """Return the full verb of a VP and the parts that follow it.

    Args:
        phrase: The VP.
        descend: Look for the verb in the inner VP that an auxiliary has.

    Returns:
        The verb, or None if there is none, and the parts behind it.
    """
    while inner := [child for child in phrase.children if child.label == "VP"]:
        if not descend:
            return None, ()
        phrase = inner[0]
    for index, child in enumerate(phrase.children):
        if child.is_tag and child.label.startswith("VB"):
            return child.word, phrase.children[index + 1 :]
    return None, ()


def first_verb(relative: Tree) -> str | None:
    """Return the full verb of a relative clause."""
    predicates = (phrase for phrase in phrases(relative) if phrase.label == "VP")
    return next((verb for verb, _ in map(main_verb, predicates) if verb), None)


def head_noun(phrase: Tree) -> str | None:
    """Return the last noun (or the pronoun) of a phrase before anything that modifies it from behind."""
    while inner := [child for child in phrase.children if child.label in ("NP", "PP")]:
        phrase = inner[0]
    nouns = [tag.word for tag in tags(phrase) if tag.label in NOUN_TAGS]
    return nouns[-1] if nouns else None


NAMES = share_found("names", GrammarTranslations.names, contains, "names-in-both-vocabularies|verbatim")
RARE_NAMES = share_found(
    "rare_names",
    rare_names,
    contains,
    "names-in-both-vocabularies|a-word-in-the-rarer-half-of-the-target-vocabulary|verbatim",
)
IDIOMS = share_found(
    "idioms",
    lambda translations, sentence: [idiom["en"].split(" ")[1:] for idiom in sentence.record["idioms"]],
    contains,
    "fixed-words-of-the-idiom-after-its-verb|verbatim",
)
CLAUSES = share_found(
    "clauses",
    lambda translations, sentence: clauses(sentence.tree),
    in_order,
    "subject-verb-object-of-each-clause|head-words-in-this-order",
)
REORDERINGS = share_found(
    "reorderings",
    lambda translations, sentence: reorderings(sentence.tree),
    in_order,
    "verb-before-its-place|noun-before-its-relative-clause|head-words-in-this-order",
)
METRICS = (NAMES, RARE_NAMES, IDIOMS, CLAUSES, REORDERINGS)

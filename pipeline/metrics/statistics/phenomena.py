"""What should be found in the words of a translation; how it was said otherwise counts for nothing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.data.trees.trees import Tree
from pipeline.metrics.statistics.metric import Inputs, Metric
from pipeline.metrics.statistics.rates import rate


@dataclass(frozen=True)
class GrammarSentence:
    """The translation into English of a sentence that the embedded grammar wrote, and what the grammar says of it."""

    words: list[str]
    record: dict[str, Any]
    """As pipeline/grammar/phenomena.py makes it."""
    tree: Tree
    """Of the reference."""


@dataclass(frozen=True)
class GrammarTranslations(Inputs):
    """Of a test set."""

    folder = "phenomena"
    forms = ("sentences",)
    collector = "grammar"
    sentences: list[GrammarSentence]
    src_words: list[str]
    tgt_words: list[str]
    """Of the vocabularies, the most frequent first."""
    lowercase: bool

    @cached_property
    def known_words(self) -> set[str]:
        """Those of both vocabularies."""
        return set(self.src_words).intersection(self.tgt_words)

    @cached_property
    def rare_words(self) -> set[str]:
        """The rarer half of the target vocabulary."""
        return set(self.tgt_words[len(self.tgt_words) // 2 :])

    def cased(self, words: Iterable[str]) -> list[str]:
        """Words of the grammar as they are in the data."""
        return [word.lower() if self.lowercase else word for word in words]

    def names(self, sentence: GrammarSentence) -> list[list[str]]:
        """Those of known words."""
        names = [self.cased(name["text"].split(" ")) for name in sentence.record["names"]]
        return [name for name in names if self.known_words.issuperset(name)]


def found(
    name: str,
    looked_for: Callable[[GrammarTranslations, GrammarSentence], Iterable[list[str]]],
    is_in: Callable[[list[str], list[str]], bool],
    signature: str,
) -> Metric[GrammarTranslations]:
    """The share of what is looked for, each several words, that is in the words of the translations."""

    def statistics(translations: GrammarTranslations) -> np.ndarray:
        rows = []
        for sentence in translations.sentences:
            wanted = [translations.cased(words) for words in looked_for(translations, sentence)]
            rows.append((sum(is_in(sentence.words, words) for words in wanted), len(wanted)))
        return np.array(rows, dtype=np.int32)

    return Metric(name, GrammarTranslations, statistics, rate, lambda _: signature)


def contains(words: list[str], wanted: list[str]) -> bool:
    """Whether `wanted` stands in `words` as it is."""
    return any(words[i : i + len(wanted)] == wanted for i in range(len(words) - len(wanted) + 1))


def in_order(words: list[str], wanted: list[str]) -> bool:
    """Whether all of `wanted` stand in `words` in this order, whatever is between them."""
    rest = iter(words)
    return all(word in rest for word in wanted)

"""Tags that a model wrote, each set on the word it is likeliest of: remedy for outputs with a tag too few or too many.

`rebuild` sets words on tags in order, so that behind a word that the model passed over all others stand a place too far
left. Here both lines are align_tags (Needleman and Wunsch 1970) by how often words bear tags in the training trees.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log

from pipeline.data.trees.linearisation import is_tag

UNALIGNED = log(0.0025)  # a word without tag, a tag without word; chosen on CRAFT's dev split: docs/measured


class TagLexicon:
    """How often each word bears each tag, smoothed by the tags of all words."""

    def __init__(self, sentences: Iterable[tuple[Sequence[str], Sequence[str]]]):
        """sentences: words and linearised tree of each training sentence."""
        self.of_word: dict[str, Counter[str]] = defaultdict(Counter)
        self.of_all: Counter[str] = Counter()
        for words, symbols in sentences:
            for word, tag in zip(words, filter(is_tag, symbols), strict=True):
                self.of_word[word][tag] += 1
                self.of_all[tag] += 1
        self.smoothed_total = self.of_all.total() + len(self.of_all) + 1  # any other tag counts as one

    def log_probability(self, tag: str, word: str) -> float:
        """Of the tag, given the word."""
        anywhere = (self.of_all[tag] + 1) / self.smoothed_total
        counts = self.of_word.get(word, Counter())
        return log((counts[tag] + anywhere) / (counts.total() + 1))

    def likeliest(self, word: str) -> str:
        """The tag that the word bears most often; of an unknown word that of most words."""
        return self.of_word.get(word, self.of_all).most_common(1)[0][0]


def align_tags(symbols: Sequence[str], words: Sequence[str], lexicon: TagLexicon) -> list[str]:
    """`symbols` with one tag for each word, if they have any: none is left over, words without get their likeliest.

    Such words stand behind the one before, in its phrase; those before the first tag stand before it.
    """
    places = align_words([*filter(is_tag, symbols)], words, lexicon)
    found = [place for place in places if place is not None]
    if places and words and not found:
        places[0], found = 0, [0]  # no tag fits better than none: the first keeps its phrase
    ends, of_tags = dict(pairwise([*found, len(words)])), iter(places)
    result: list[str] = []
    for symbol in symbols:
        if not is_tag(symbol):
            result.append(symbol)
        elif (place := next(of_tags)) is not None:
            before, behind = words[: place if place == found[0] else 0], words[place + 1 : ends[place]]
            result += [*map(lexicon.likeliest, before), symbol, *map(lexicon.likeliest, behind)]
    return result


def align_words(tags: Sequence[str], words: Sequence[str], lexicon: TagLexicon) -> list[int | None]:
    """The place of its word, rising from tag to tag, None for a tag left over: the likeliest alignment."""
    fit = [[lexicon.log_probability(tag, word) for tag in tags] for word in words]
    best = [[UNALIGNED * count for count in range(len(tags) + 1)]]
    for row in fit:
        above, here = best[-1], [best[-1][0] + UNALIGNED]
        for tag, both in enumerate(row):
            here.append(max(above[tag] + both, above[tag + 1] + UNALIGNED, here[tag] + UNALIGNED))
        best.append(here)
    places: list[int | None] = [None] * len(tags)
    word, tag = len(words), len(tags)
    while word and tag:
        score = best[word][tag]
        if score == best[word - 1][tag - 1] + fit[word - 1][tag - 1]:
            word, tag = word - 1, tag - 1
            places[tag] = word
        elif score == best[word - 1][tag] + UNALIGNED:
            word -= 1
        else:
            tag -= 1
    return places

"""Alignment of predicted tags with words, for outputs with missing or surplus tags.

`rebuild` pairs words and tags in order, so after a skipped word all tags are one place off. Here both lines are
aligned (Needleman and Wunsch 1970) by how often words bear tags in the training trees.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log

from pipeline.data.trees.linearisation import is_tag

UNALIGNED = log(0.0025)
"""Score of a word without tag, and of a tag without word; chosen on CRAFT's dev split (docs/measured)."""


class TagLexicon:
    """Frequencies of the tags of each word, smoothed by the tags of all words.

    Args:
        sentences: Words and linearised tree of each training sentence.
    """

    def __init__(self, sentences: Iterable[tuple[Sequence[str], Sequence[str]]]):
        self.of_word: dict[str, Counter[str]] = defaultdict(Counter)
        self.of_all: Counter[str] = Counter()
        for words, symbols in sentences:
            for word, tag in zip(words, filter(is_tag, symbols), strict=True):
                self.of_word[word][tag] += 1
                self.of_all[tag] += 1
        self.smoothed_total = self.of_all.total() + len(self.of_all) + 1  # any other tag counts as one

    def log_probability(self, tag: str, word: str) -> float:
        """Return the log probability of a tag given the word, in nats.

        Args:
            tag: Any tag.
            word: Any word.
        """
        anywhere = (self.of_all[tag] + 1) / self.smoothed_total
        counts = self.of_word.get(word, Counter())
        return log((counts[tag] + anywhere) / (counts.total() + 1))

    def likeliest(self, word: str) -> str:
        """Return the most frequent tag of a word; for an unknown word, of all words."""
        return self.of_word.get(word, self.of_all).most_common(1)[0][0]


def align_tags(symbols: Sequence[str], words: Sequence[str], lexicon: TagLexicon) -> list[str]:
    """Return `symbols` with exactly one tag for each word, if they have any tag.

    Surplus tags are dropped, and words without a tag get their most frequent one. Such tags follow the tag before, in
    its phrase; those of words before the first tag precede it.

    Args:
        symbols: Symbols of a linearised tree, well-formed or not.
        words: Words of the source sentence.
        lexicon: Tags of the training trees.
    """
    places = align_words([*filter(is_tag, symbols)], words, lexicon)
    found = [place for place in places if place is not None]
    if places and words and not found:
        places[0], found = 0, [0]  # nothing aligns: the first tag keeps its phrase
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
    """Return the index of each tag's word in the best alignment, rising; None for surplus tags.

    Args:
        tags: Predicted tags.
        words: Words of the source sentence.
        lexicon: Tags of the training trees.
    """
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

"""Linearised trees, which a sequence model can predict (Vinyals et al. 2015), and their inverse.

`(TOP (S (NP (PRP We)) (VP (VBP agree)) (. .)))` becomes `(S (NP PRP /NP (VP VBP /VP . /S`. Depth first, `(X` opens a
phrase, `/X` closes it, and each word is its part-of-speech tag. TOP is omitted.

`rebuild` makes a tree over exactly the words of the source from any symbols. It counts repairs: they are rare in a
trained model, and their rate is published with its score. It pairs words and tags in order, so after a skipped word all
tags are one place off. `align_tags` corrects such outputs before: it aligns tags and words (Needleman and Wunsch 1970)
by how often words bear tags in the training trees.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from pipeline.core.errors import UserError
from pipeline.data.trees.trees import TOP, Builder, Tree, events

OPEN, CLOSE = "(", "/"
UNKNOWN_TAG = "XX"
"""Tag of a word for which the output has none."""
UNALIGNED = log(0.0025)
"""Score of a word without tag, and of a tag without word; chosen on CRAFT's dev split (docs/measured)."""
LABEL = re.compile(r"[^ \t\r\n()]+")


@dataclass
class Repairs:
    """Repairs that made a tree of a sequence; all zero for a well-formed one."""

    missing_closers: int = 0
    """Phrases closed without their `/X`."""
    surplus_closers: int = 0
    """`/X` without an open phrase, dropped."""
    missing_tags: int = 0
    """Words without a tag, added as XX at the end of the last outermost phrase."""
    surplus_tags: int = 0
    """Tags without a word, dropped."""
    empty_phrases: int = 0
    """Phrases without a word, dropped."""
    foreign_symbols: int = 0
    """Symbols that are no labels, dropped."""

    @property
    def balanced(self) -> bool:
        """True if the brackets of the output match."""
        return not (self.missing_closers or self.surplus_closers or self.foreign_symbols)

    @property
    def any(self) -> bool:
        """True if there was any repair."""
        return any(vars(self).values())


def linearise(tree: Tree, where: str = "a tree") -> list[str]:
    """Return the symbols of a cleaned tree; `where` names file and line for the message.

    Raises:
        UserError: A tag looks like a bracket, so that the tree could not be rebuilt.
    """
    symbols = []
    for kind, node in events(tree):
        if kind == "tag" and node.label.startswith((OPEN, CLOSE)):
            raise UserError(
                f"{where}: the tag {node.label!r} of {node.word!r} looks like a bracket of the linearised tree; "
                "rename the tag"
            )
        if node is not tree or node.is_tag:
            symbols.append({"open": OPEN, "close": CLOSE, "tag": ""}[kind] + node.label)
    return symbols


def is_tag(symbol: str) -> bool:
    """Return whether `rebuild` takes a symbol for the tag of a word."""
    return not symbol.startswith((OPEN, CLOSE)) and bool(LABEL.fullmatch(symbol))


def rebuild(symbols: Sequence[str], words: Sequence[str]) -> tuple[Tree, Repairs]:
    """Build a tree with TOP over exactly `words` from any symbols.

    A closer that matches an outer phrase closes the phrases inside it too. Words and tags are paired in order.

    Args:
        symbols: Symbols of a linearised tree, well-formed or not.
        words: Words of the source sentence.

    Returns:
        The tree and its repairs.
    """
    builder, repairs, left = Builder(), Repairs(), list(reversed(words))
    for symbol in symbols:
        label = symbol.removeprefix(OPEN) if symbol.startswith(OPEN) else symbol.removeprefix(CLOSE)
        if not LABEL.fullmatch(label):
            repairs.foreign_symbols += 1
        elif symbol.startswith(OPEN):
            builder.open(label)
        elif symbol.startswith(CLOSE):
            close(builder, label, repairs)
        elif left:
            builder.tag(label, left.pop())
        else:
            repairs.surplus_tags += 1
    repairs.missing_closers += len(builder.labels)
    while builder.labels:
        repairs.empty_phrases += not builder.close()
    repairs.missing_tags = len(left)
    return Tree(TOP, add_untagged_words(builder.roots, left[::-1])), repairs


def close(builder: Builder, label: str, repairs: Repairs) -> None:
    """Let a `builder` close the innermost open phrase with a `label`, if there is one, and count `repairs`."""
    if not builder.open_labels[label]:
        repairs.surplus_closers += 1
        return
    while True:
        innermost = builder.labels[-1]
        repairs.empty_phrases += not builder.close()
        if innermost == label:
            return
        repairs.missing_closers += 1


def add_untagged_words(roots: tuple[Tree, ...], words: Sequence[str]) -> tuple[Tree, ...]:
    """Add `words` without tags to the last phrase of the `roots`, trees without TOP."""
    extra = tuple(Tree(UNKNOWN_TAG, word=word) for word in words)
    if extra and roots and not roots[-1].is_tag:
        return (*roots[:-1], Tree(roots[-1].label, (*roots[-1].children, *extra)))
    return (*roots, *extra)


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
        """Return the log probability of any `tag` given any `word`, in nats."""
        anywhere = (self.of_all[tag] + 1) / self.smoothed_total
        counts = self.of_word.get(word, Counter())
        return log((counts[tag] + anywhere) / (counts.total() + 1))

    def likeliest(self, word: str) -> str:
        """Return the most frequent tag of a word; for an unknown word, of all words."""
        return self.of_word.get(word, self.of_all).most_common(1)[0][0]


def align_tags(symbols: Sequence[str], words: Sequence[str], lexicon: TagLexicon) -> list[str]:
    """Return `symbols` with exactly one tag for each word, if they have any tag; see `rebuild`.

    Surplus tags are dropped, and words without a tag get their most frequent one in the `lexicon` of the training
    trees. Such tags follow the tag before, in its phrase; those of words before the first tag precede it.
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
    """Return the index of the word, in `words`, of each of the predicted `tags` by a `lexicon`; None for surplus tags.

    Indices rise in the best alignment.
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

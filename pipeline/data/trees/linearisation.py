"""Linearised trees, which a sequence model can predict (Vinyals et al. 2015), and their inverse.

`(TOP (S (NP (PRP We)) (VP (VBP agree)) (. .)))` becomes `(S (NP PRP /NP (VP VBP /VP . /S`: depth first, `(X` opens a
phrase, `/X` closes it, and each word is its part-of-speech tag. TOP is omitted.

`rebuild` makes a tree over exactly the words of the source from any symbols. It counts repairs: they are rare in a
trained model, and their rate is published with its score.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.core.errors import UserError
from pipeline.data.trees.trees import TOP, Builder, Tree, events

OPEN, CLOSE = "(", "/"
UNKNOWN_TAG = "XX"
"""Tag of a word for which the output has none."""
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


def linearise(tree: Tree) -> list[str]:
    """Return the symbols of a cleaned tree.

    Raises:
        UserError: A tag looks like a bracket, so that the tree could not be rebuilt.
    """
    symbols = []
    for kind, node in events(tree):
        if kind == "tag" and node.label.startswith((OPEN, CLOSE)):
            raise UserError(f"the tag {node.label!r} of {node.word!r} looks like a bracket of the linearised tree")
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
    return Tree(TOP, with_words(builder.roots, left[::-1])), repairs


def close(builder: Builder, label: str, repairs: Repairs) -> None:
    """Close the innermost open phrase of that label, if there is one.

    Args:
        builder: Builder with the open phrases; changed here.
        label: Label of the closing symbol.
        repairs: Counts of repairs; changed here.
    """
    if not builder.open_labels[label]:
        repairs.surplus_closers += 1
        return
    while True:
        innermost = builder.labels[-1]
        repairs.empty_phrases += not builder.close()
        if innermost == label:
            return
        repairs.missing_closers += 1


def with_words(roots: tuple[Tree, ...], words: Sequence[str]) -> tuple[Tree, ...]:
    """Add words without tags to the last phrase.

    Args:
        roots: Trees without TOP.
        words: Words without tags, in order.

    Returns:
        The trees with all words.
    """
    extra = tuple(Tree(UNKNOWN_TAG, word=word) for word in words)
    if extra and roots and not roots[-1].is_tag:
        return (*roots[:-1], Tree(roots[-1].label, (*roots[-1].children, *extra)))
    return (*roots, *extra)

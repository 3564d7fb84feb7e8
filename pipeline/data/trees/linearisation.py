"""Trees as sequences of symbols, which a sequence model can learn to write (Vinyals et al. 2015), and back.

`(TOP (S (NP (PRP We)) (VP (VBP agree)) (. .)))` is written `(S (NP PRP /NP (VP VBP /VP . /S`: depth first, a phrase
opened by `(X` and closed by `/X`, of each word only its part-of-speech tag; TOP goes without saying.

Whatever symbols a model writes, `rebuild` makes a tree of them over exactly the words of the source. Repairs are
counted: they are rare in a trained model, and the rate is published with its score.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.core.errors import UserError
from pipeline.data.trees.trees import TOP, Builder, Tree, events

OPEN, CLOSE = "(", "/"
UNKNOWN_TAG = "XX"  # of a word for which no tag was written
LABEL = re.compile(r"[^ \t\r\n()]+")


@dataclass
class Repairs:
    """What had to be done to make a tree of a sequence; all zero for a well-formed one."""

    missing_closers: int = 0
    """Phrases closed without their `/X`."""
    surplus_closers: int = 0
    """`/X` that close nothing open, left out."""
    missing_tags: int = 0
    """Words for which no tag was written: added at the end of the last outermost phrase, as XX."""
    surplus_tags: int = 0
    """Tags for which no word was left, left out."""
    empty_phrases: int = 0
    """Phrases without a word, left out."""
    foreign_symbols: int = 0
    """Symbols that are no label, left out."""

    @property
    def balanced(self) -> bool:
        """Whether the brackets as written match."""
        return not (self.missing_closers or self.surplus_closers or self.foreign_symbols)

    @property
    def any(self) -> bool:
        return any(vars(self).values())


def linearise(tree: Tree) -> list[str]:
    """The symbols of a cleaned tree.

    Raises:
        UserError: a tag reads as a bracket, so that the tree could not be had back.
    """
    symbols = []
    for kind, node in events(tree):
        if kind == "tag" and node.label.startswith((OPEN, CLOSE)):
            raise UserError(f"the tag {node.label!r} of {node.word!r} reads as a bracket of the linearised tree")
        if node is not tree or node.is_tag:
            symbols.append({"open": OPEN, "close": CLOSE, "tag": ""}[kind] + node.label)
    return symbols


def is_tag(symbol: str) -> bool:
    """Whether `rebuild` takes it for a word's tag."""
    return not symbol.startswith((OPEN, CLOSE)) and bool(LABEL.fullmatch(symbol))


def rebuild(symbols: Sequence[str], words: Sequence[str]) -> tuple[Tree, Repairs]:
    """A tree over exactly `words`, TOP above all, of any symbols; and what had to be repaired.

    A closer that matches a phrase further out closes those inside it too. Words are set on tags in order.
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
    """Close the innermost open phrase of that label, if there is one."""
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
    """`roots` with the words for which there was no tag, as further parts of the last phrase."""
    extra = tuple(Tree(UNKNOWN_TAG, word=word) for word in words)
    if extra and roots and not roots[-1].is_tag:
        return (*roots[:-1], Tree(roots[-1].label, (*roots[-1].children, *extra)))
    return (*roots, *extra)

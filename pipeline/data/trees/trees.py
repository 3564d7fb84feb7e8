r"""Constituency trees in Penn bracketing: parsing and cleaning.

`( (S (NP-SBJ (PRP We)) (VP (VBP agree) (NP (-NONE- *T*))) (. .)) )` is cleaned to
`(TOP (S (NP (PRP We)) (VP (VBP agree)) (. .)))`. Cleaning removes traces, phrases that they leave empty, function tags
and indices, and labels the top TOP. Words stay as the treebank writes them (`-LRB-`, `1\\/2`).

No function recurses, so the output of a parser may nest to any depth.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from pipeline.core.errors import UserError, count_of

TOP = "TOP"
TOP_LABELS = frozenset({"", "TOP", "ROOT", "S1"})
TRACE = "-NONE-"
BRACKETS = frozenset("()")
SYMBOL = re.compile(r"[()]|[^ \t\r\n()]+")  # not \s: a treebank's word may hold a no-break space
FUNCTION = re.compile(r"[-=].*")
MOST_SYMBOLS = 200_000
"""Maximum number of symbols of a tree; more mean a missing bracket, as no sentence is that long."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A phrase with its children, or a part-of-speech tag over a word.

    Attributes:
        label: Phrase label or tag.
        children: Parts of a phrase, left to right.
        word: Word under a tag; None for a phrase.
    """

    label: str
    children: tuple["Tree", ...] = ()
    word: str | None = None

    @property
    def is_tag(self) -> bool:
        """True for a pre-terminal: a tag over a word."""
        return self.word is not None

    def __str__(self) -> str:
        """Return the bracketing on one line."""
        parts = []
        for kind, node in events(self):
            match kind:
                case "open":
                    parts.append(f" ({node.label}")
                case "tag":
                    parts.append(f" ({node.label} {node.word})")
                case "close":
                    parts.append(")")
        return "".join(parts).removeprefix(" ")


Event = tuple[Literal["open", "tag", "close"], Tree]


def events(tree: Tree) -> Iterator[Event]:
    """Yield `open` and `close` of each phrase and the tags between them, depth first in text order."""
    agenda: list[Event] = [("tag" if tree.is_tag else "open", tree)]
    while agenda:
        kind, node = agenda.pop()
        yield kind, node
        if kind == "open":
            agenda.append(("close", node))
            agenda.extend(("tag" if child.is_tag else "open", child) for child in reversed(node.children))


def tags(tree: Tree) -> list[Tree]:
    """Return the pre-terminals, left to right."""
    return [node for kind, node in events(tree) if kind == "tag"]


def words(tree: Tree) -> list[str]:
    """Return the words, left to right."""
    return [node.word for node in tags(tree) if node.word is not None]


class Builder:
    """Builder of a tree from its events, with a stack of open phrases, outermost first."""

    def __init__(self):
        self.labels: list[str] = []
        self.open_labels: Counter[str] = Counter()
        self.parts: list[list[Tree]] = [[]]

    def open(self, label: str) -> None:
        """Open a phrase."""
        self.labels.append(label)
        self.open_labels[label] += 1
        self.parts.append([])

    def tag(self, label: str, word: str) -> None:
        """Add a tag `label` over a `word`."""
        self.parts[-1].append(Tree(label, word=word))

    def close(self, keep_empty: bool = False) -> bool:
        """Close the innermost phrase and return whether it has children; without any it is dropped."""
        label, parts = self.labels.pop(), self.parts.pop()
        self.open_labels[label] -= 1
        if parts or keep_empty:
            self.parts[-1].append(Tree(label, tuple(parts)))
        return bool(parts)

    @property
    def roots(self) -> tuple[Tree, ...]:
        """Finished trees at the top level."""
        return tuple(self.parts[0])


def bracketings(lines: Iterable[str], where: str) -> Iterator[tuple[int, str]]:
    """Yield the number of the first line and the bracketing, on one line, of each tree in `lines` of a file `where`.

    Raises:
        UserError: Text is outside brackets, or a bracket does not match; the message has the line.
    """
    symbols: list[str] = []
    depth, begin, number = 0, 0, 0
    for number, line in enumerate(lines, start=1):
        for symbol in SYMBOL.findall(line):
            begin = number if depth == 0 else begin
            depth += {"(": 1, ")": -1}.get(symbol, 0)
            if depth < 0 or (depth == 0 and symbol != ")"):
                raise UserError(f"{where}: line {number}: {symbol!r} stands outside a tree; is this Penn bracketing?")
            symbols.append(symbol)
            if len(symbols) > MOST_SYMBOLS:
                raise UserError(f"{where}: line {begin}: this tree has over {MOST_SYMBOLS:,} symbols; is it closed?")
            if depth == 0:
                yield begin, joined(symbols)
                symbols.clear()
    if depth:
        raise UserError(f"{where}: line {begin}: this tree is not closed by the end of the file, line {number}")


def joined(symbols: list[str]) -> str:
    """Join symbols, with spaces except before closing brackets and after opening ones."""
    spaced = [
        symbol if symbol == ")" or (before == "(" and symbol != "(") else f" {symbol}"
        for before, symbol in zip(["(", *symbols], symbols, strict=False)
    ]
    return "".join(spaced).removeprefix(" ")


def parse_tree(text: str, where: str) -> Tree:
    """Return the tree of one bracketing, `text`, as written; `where` names file and line for the message.

    A tag over several words, of which CRAFT has five, is repeated over each word.

    Raises:
        UserError: Brackets don't match, or a node is neither a phrase of nodes nor a tag over words.
    """
    builder, symbols = Builder(), SYMBOL.findall(text)
    place = 0
    while place < len(symbols):
        match symbols[place : place + 3]:
            case ["(", "(", *_] if place == 0:  # only the top may go without a label
                builder.open("")
                place += 1
            case ["(", label, "("] if label != ")":
                builder.open(label)
                place += 2
            case ["(", label, _] if label != ")" and (found := words_from(symbols, place + 2)):
                for word in found:
                    builder.tag(label, word)
                place += 3 + len(found)
            case [")", *_] if builder.labels:
                builder.close()
                place += 1
            case near:
                raise UserError(f"{where}: not a tree at {' '.join(near)!r}, symbol {place + 1}: {text[:80]}")
    if builder.labels or len(builder.roots) != 1:
        trees, brackets = count_of(len(builder.roots), "tree"), count_of(len(builder.labels), "open bracket")
        raise UserError(f"{where}: {trees} and {brackets}: {text[:80]}")
    return builder.roots[0]


def words_from(symbols: list[str], place: int) -> list[str]:
    """Return the words of `symbols` from `place` to a closing bracket; none if an opening bracket comes first."""
    end = place
    while end < len(symbols) and symbols[end] not in BRACKETS:
        end += 1
    return symbols[place:end] if symbols[end : end + 1] == [")"] else []


def clean(tree: Tree) -> Tree:
    """Return a tree without traces, empty phrases and function labels, with one TOP above all.

    A tree of traces alone becomes a TOP without children.
    """
    inside = tree.children if not tree.is_tag and tree.label in TOP_LABELS else (tree,)
    builder = Builder()
    builder.open(TOP)
    for part in inside:
        for kind, node in events(part):
            match kind:
                case "open":
                    builder.open(bare_label(node.label))
                case "tag" if node.word is not None and node.label != TRACE:
                    builder.tag(node.label, node.word)
                case "close":
                    builder.close()
    builder.close(keep_empty=True)
    return builder.roots[0]


def bare_label(label: str) -> str:
    """Return a label without function tags: NP for `NP-SBJ-1` and `NP=2`; `-LRB-` stays."""
    return label if label.startswith("-") else FUNCTION.sub("", label)

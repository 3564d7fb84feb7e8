"""Share of pairs of words that English and Chinese order differently, and that came out in the English order."""

from collections.abc import Iterator

from pipeline.data.trees.trees import Tree, tags
from pipeline.metrics.statistics.heads import head_noun, main_verb, phrases
from pipeline.metrics.statistics.phenomena import found, in_order

BEFORE_THE_VERB = frozenset({"in", "on", "at", "with"})
"""What these prepositions begin, places, times and company, stands before the verb in Chinese."""


def reorderings(tree: Tree) -> Iterator[list[str]]:
    """Pairs of head words that English has in this order and Chinese in the other: a verb and the noun of its place,
    time or company, a noun and the verb of its relative clause."""
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


def first_verb(relative: Tree) -> str | None:
    """The full verb of a relative clause."""
    predicates = (phrase for phrase in phrases(relative) if phrase.label == "VP")
    return next((verb for verb, _ in map(main_verb, predicates) if verb), None)


METRIC = found(
    "reorderings",
    lambda translations, sentence: reorderings(sentence.tree),
    in_order,
    "verb-before-its-place|noun-before-its-relative-clause|head-words-in-this-order",
)

"""Share of clauses whose subject, verb and object are all there, in this order."""

from collections.abc import Iterator

from pipeline.data.trees.trees import Tree
from pipeline.metrics.statistics.heads import head_noun, main_verb, phrases
from pipeline.metrics.statistics.phenomena import found, in_order


def clauses(tree: Tree) -> Iterator[list[str]]:
    """Head words of subject, verb and object (or time, where there is no object) of each clause that has all three."""
    for phrase in phrases(tree):
        for subject, predicate in zip(phrase.children, phrase.children[1:], strict=False):
            if (subject.label, predicate.label) != ("NP", "VP"):
                continue
            verb, after = main_verb(predicate)
            objects = [part for part in after if part.label == "NP"]
            if verb and objects and (first := head_noun(subject)) and (last := head_noun(objects[0])):
                yield [first, verb, last]


METRIC = found(
    "clauses",
    lambda translations, sentence: clauses(sentence.tree),
    in_order,
    "subject-verb-object-of-each-clause|head-words-in-this-order",
)

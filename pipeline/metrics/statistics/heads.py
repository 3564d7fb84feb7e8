"""Head words of phrases."""

from collections.abc import Iterator

from pipeline.data.trees.trees import Tree, tags

NOUN_TAGS = ("NN", "NNS", "NNP", "PRP")


def phrases(tree: Tree) -> Iterator[Tree]:
    """Every phrase, outer ones first."""
    agenda = [tree]
    while agenda:
        phrase = agenda.pop()
        if not phrase.is_tag:
            yield phrase
            agenda.extend(reversed(phrase.children))


def main_verb(phrase: Tree, descend: bool = True) -> tuple[str | None, tuple[Tree, ...]]:
    """The full verb of a VP and what follows it; auxiliaries have it in a VP within theirs."""
    while inner := [child for child in phrase.children if child.label == "VP"]:
        if not descend:
            return None, ()
        phrase = inner[0]
    for place, child in enumerate(phrase.children):
        if child.is_tag and child.label.startswith("VB"):
            return child.word, phrase.children[place + 1 :]
    return None, ()


def head_noun(phrase: Tree) -> str | None:
    """The last noun, or the pronoun, of a phrase before anything that modifies it from behind."""
    while inner := [child for child in phrase.children if child.label in ("NP", "PP")]:
        phrase = inner[0]
    nouns = [tag.word for tag in tags(phrase) if tag.label in NOUN_TAGS]
    return nouns[-1] if nouns else None

"""Lines longer than any sentence that the grammar derives: several of one domain in a row."""

from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random
from typing import Any

from pipeline.grammar.corpus import Domain, Sentence, endless
from pipeline.grammar.text import chinese_text

AND = {"en": "and", "de": "und", "fr": "et", "zh": "和"}
"""Between queries, which have no full stop."""


def endless_chains(domain: Domain, rng: Random, held_out: bool, at_least: int) -> Iterator[Sentence]:
    """Sentences in a row, no more than are needed for `at_least` English words, punctuation not counted."""
    while True:
        parts: list[Sentence] = []
        stream = endless(domain, rng, held_out)
        while words(parts) < at_least:
            parts.append(next(stream))
        yield chained(parts)


def words(parts: Sequence[Sentence]) -> int:
    """English words of the chain, without punctuation."""
    joints = len(parts) - 1 if parts and is_query(parts[0]) else 0
    return joints + sum(part.phenomena["length"] for part in parts)


def is_query(sentence: Sentence) -> bool:
    return sentence.phenomena["domain"] == "search"


def chained(parts: Sequence[Sentence]) -> Sentence:
    """Queries with `and` between them, or sentences one after the other; all of one domain."""
    queries = is_query(parts[0])
    joints = {language: f" {word} " if queries else " " for language, word in AND.items()}
    between = [AND["zh"]] if queries else []
    zh_words = [word for part in parts for word in (*between, *part.zh_words)][len(between) :]
    trees = [part.tree.removeprefix("(TOP ").removesuffix(")") for part in parts]
    label, joint = ("FRAG", f" (CC {AND['en']}) ") if queries else ("S", " ")
    return Sentence(
        **{language: joints[language].join(part.text(language) for part in parts) for language in ("en", "de", "fr")},
        zh=chinese_text(zh_words),
        tree=f"(TOP ({label} {joint.join(trees)}))",
        phenomena=merged([part.phenomena for part in parts]) | {"length": words(parts)},
        zh_words=tuple(zh_words),
    )


def merged(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The phenomena of all parts."""
    first, *_ = records
    lists = {key for key, value in first.items() if isinstance(value, list)}
    found = {key: list(chain.from_iterable(record[key] for record in records)) for key in lists}
    return first | found | {"kinds": sorted(set(found["kinds"]))}

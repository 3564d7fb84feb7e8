"""Sentences of the grammar, without the files of a corpus."""

from random import Random

from pipeline.grammar.corpus import Domain, Sentence, endless
from pipeline.grammar.new_items import new_items


def generate(domain: Domain, count: int, seed: int, held_out: bool = False) -> list[Sentence]:
    """No two alike in any language. held_out: with names and verb-object combinations that are left to test splits."""
    stream = endless(domain, Random(f"grammar/{domain}/{seed}"), held_out)
    return [*new_items(stream, count, Sentence.keys, set(), "count")]

"""Sentences of the grammar, without the files of a corpus."""

from random import Random

from pipeline.grammar.corpus import LANGUAGES, Domain, Sentence, endless, next_unseen


def generate(domain: Domain, count: int, seed: int, held_out: bool = False) -> list[Sentence]:
    """No two alike in any language. held_out: with names and verb-object combinations that are left to test splits."""
    seen: dict[str, set[str]] = {language: set() for language in LANGUAGES}
    stream = endless(domain, Random(f"grammar/{domain}/{seed}"), held_out)
    return [next_unseen(stream, seen) for _ in range(count)]

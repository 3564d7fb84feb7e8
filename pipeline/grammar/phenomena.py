"""What to look for in the translations of a sentence, ready for JSON."""

from collections import Counter
from typing import Any

from pipeline.grammar import german
from pipeline.grammar.lexicon import VERBS
from pipeline.grammar.structure import Facts
from pipeline.grammar.words import Noun, Verb

SENSES = Counter((verb.en.base, verb.en.preposition, verb.en.particle) for verb in VERBS if not verb.en.fixed)


def phenomena(domain: str, facts: Facts, length: int) -> dict[str, Any]:
    """The phenomena record of one sentence.

    kinds: which phenomena it has. names: to be found verbatim in every language. idioms, senses: `de`, `fr`, `zh` are
    fixed words of the right translation. verb_final: the German words that close each clause with the verb last.
    combinations: verb and object that no training sentence has. length: English words without punctuation.
    """
    senses = [*_verb_senses(facts.verbs), *_noun_senses(facts.nouns)]
    kinds = facts.kinds | ({"sense"} if senses else set()) | ({"verb_final"} if facts.verb_final else set())
    return {
        "domain": domain,
        "length": length,
        "kinds": sorted(kinds),
        "names": [
            {"text": name.text.lower() if domain == "search" else name.text, "unseen": name.unseen}
            for name in facts.names
        ],
        "idioms": [_idiom(verb) for verb in facts.verbs if verb.idiom],
        "senses": senses,
        "verb_final": [german.closing_words(clause) for clause in facts.verb_final],
        "combinations": facts.combinations,
    }


def _idiom(verb: Verb) -> dict[str, Any]:
    return {"en": verb.key, "de": " ".join(verb.de.fixed), "fr": " ".join(verb.fr.fixed), "zh": _chinese(verb)}


def _chinese(verb: Verb) -> list[str]:
    return [piece for piece in verb.zh if piece not in "~^+"]


def _verb_senses(verbs: list[Verb]) -> list[dict[str, Any]]:
    """Verbs whose object decides their translation; German and French as infinitives."""
    return [
        {"en": verb.en.base, "de": verb.de.infinitive, "fr": verb.fr.infinitive, "zh": _chinese(verb)}
        for verb in verbs
        if SENSES[verb.en.base, verb.en.preposition, verb.en.particle] > 1 and not verb.en.fixed
    ]


def _noun_senses(nouns: list[Noun]) -> list[dict[str, Any]]:
    return [{"en": one.en[0], "de": one.de[0][0], "fr": one.fr[0], "zh": [one.zh]} for one in nouns if one.ambiguous]

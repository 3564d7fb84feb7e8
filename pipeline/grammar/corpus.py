"""Random sentences in four languages, with the English tree and a record of their phenomena."""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, NamedTuple

from pipeline.grammar import chinese, english, french, german
from pipeline.grammar.derivation import Deriver
from pipeline.grammar.lexicon import VERBS
from pipeline.grammar.queries import QueryParts, draw_query
from pipeline.grammar.structure import DerivationNotes, Utterance
from pipeline.grammar.words import Noun, Verb

Domain = Literal["film", "search"]
LANGUAGES = ("en", "de", "fr", "zh")
SHORTEST, LONGEST = 3, 40
PUNCTUATION = frozenset(",.?")
SENSES = Counter((verb.en.base, verb.en.preposition, verb.en.particle) for verb in VERBS if not verb.en.fixed)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in four languages. `tree` brackets the English tokens, `zh_words` are the Chinese words."""

    en: str
    de: str
    fr: str
    zh: str
    tree: str
    phenomena: dict[str, Any]
    zh_words: tuple[str, ...]

    def text(self, language: str) -> str:
        """Return the sentence in one language."""
        return getattr(self, language)

    def keys(self) -> set[Hashable]:
        """Return what no other sentence of a corpus may share: the text in each language."""
        return {(language, self.text(language)) for language in LANGUAGES}


def endless(domain: Domain, rng: Random, held_out: bool) -> Iterator[Sentence]:
    """Yield sentences of admissible length without end, with repetitions.

    Args:
        domain: Domain of the sentences.
        rng: Random number generator.
        held_out: Allow names and combinations that are reserved for the test split.
    """
    draw = draw_film if domain == "film" else draw_search
    while True:
        if (sentence := draw(rng, held_out)) is not None:
            yield sentence


class Derived(NamedTuple):
    """A sentence of a film, derived but not yet translated.

    Attributes:
        words: Leaves of the English tree.
        length: Number of words without punctuation.
    """

    utterance: Utterance
    tree: str
    words: list[str]
    notes: DerivationNotes
    length: int


def endless_english(rng: Random, held_out: bool) -> Iterator[str]:
    """Yield the English texts of the sentences of films without their translations; see `endless`."""
    while True:
        if (film := derive_film(rng, held_out)) is not None:
            yield running_text(film.words)


def derive_film(rng: Random, held_out: bool) -> Derived | None:
    """Return one derived sentence; None if it is too short or too long (see `endless`)."""
    deriver = Deriver(rng, held_out)
    utterance = deriver.film()
    tree = english.sentence(utterance)
    words = english.tokens(tree)
    length = sum(word not in PUNCTUATION for word in words)
    return Derived(utterance, tree, words, deriver.notes, length) if SHORTEST <= length <= LONGEST else None


def draw_film(rng: Random, held_out: bool) -> Sentence | None:
    """Return one drawn sentence; None if it is too short or too long (see `endless`)."""
    film = derive_film(rng, held_out)
    return None if film is None else realise(film)


def realise(film: Derived) -> Sentence:
    """Return a derived sentence in all languages."""
    utterance = film.utterance
    de = running_text(single_commas(german.sentence(utterance)))
    fr = running_text(french.elide(french.sentence(utterance)), space_before=frozenset("?"))
    zh_words = chinese.sentence(utterance)
    return Sentence(
        en=running_text(film.words),
        de=capitalised(de),
        fr=capitalised(fr),
        zh=chinese_text(zh_words),
        tree=film.tree,
        phenomena=phenomena("film", film.notes, film.length),
        zh_words=tuple(zh_words),
    )


def draw_search(rng: Random, held_out: bool) -> Sentence | None:
    """Return one drawn query in lower case; None if it is too short or too long (see `endless`)."""
    parts = QueryParts(rng, held_out)
    query = draw_query(parts)
    lower_case = english.LEAF.sub(lambda leaf: leaf[0].lower(), query.en)
    tree = f"(TOP (FRAG {lower_case}))"
    words = english.tokens(tree)
    if not SHORTEST <= len(words) <= LONGEST:
        return None
    zh_words = [word.lower() for word in query.zh]
    return Sentence(
        en=running_text(words),
        de=running_text(query.de).lower(),
        fr=running_text(french.elide(query.fr)).lower(),
        zh=chinese_text(zh_words),
        tree=tree,
        phenomena=phenomena("search", parts.notes, len(words)),
        zh_words=tuple(zh_words),
    )


def phenomena(domain: str, notes: DerivationNotes, length: int) -> dict[str, Any]:
    """Return the record of a sentence's phenomena, ready for JSON.

    - `kinds`: kinds of phenomena;
    - `names`: names that stand verbatim in every language;
    - `idioms` and `senses`: words of the correct translations;
    - `verb_final`: words that close each verb-final German clause;
    - `combinations`: verb and object that no training sentence combines;
    - `length`: English words of the sentence, without punctuation.

    Queries, whose `domain` is search, are in lower case.
    """
    senses = [*_verb_senses(notes.verbs), *_noun_senses(notes.nouns)]
    kinds = notes.kinds | ({"sense"} if senses else set()) | ({"verb_final"} if notes.verb_final else set())
    return {
        "domain": domain,
        "length": length,
        "kinds": sorted(kinds),
        "names": [
            {"text": name.text.lower() if domain == "search" else name.text, "unseen": name.unseen}
            for name in notes.names
        ],
        "idioms": [_idiom(verb) for verb in notes.verbs if verb.idiom],
        "senses": senses,
        "verb_final": [german.closing_words(clause) for clause in notes.verb_final],
        "combinations": notes.combinations,
    }


def _idiom(verb: Verb) -> dict[str, Any]:
    return {"en": verb.key, "de": " ".join(verb.de.fixed), "fr": " ".join(verb.fr.fixed), "zh": _chinese(verb)}


def _chinese(verb: Verb) -> list[str]:
    return [piece for piece in verb.zh if piece not in "~^+"]


def _verb_senses(verbs: list[Verb]) -> list[dict[str, Any]]:
    """Return the verbs whose translation depends on the object; German and French as infinitives."""
    return [
        {"en": verb.en.base, "de": verb.de.infinitive, "fr": verb.fr.infinitive, "zh": _chinese(verb)}
        for verb in verbs
        if SENSES[verb.en.base, verb.en.preposition, verb.en.particle] > 1 and not verb.en.fixed
    ]


def _noun_senses(nouns: list[Noun]) -> list[dict[str, Any]]:
    return [
        {"en": noun.en[0], "de": noun.de[0][0], "fr": noun.fr[0], "zh": [noun.zh]} for noun in nouns if noun.ambiguous
    ]


def running_text(words: list[str], space_before: frozenset[str] = frozenset()) -> str:
    """Return `words` with spaces; marks join the previous word except `space_before`, apostrophes the next."""
    pieces: list[str] = []
    glue = ""
    for word in words:
        pieces.append(word if word in PUNCTUATION and word not in space_before else glue + word)
        glue = "" if word.endswith("'") else " "
    return "".join(pieces)


def single_commas(words: list[str]) -> list[str]:
    """Drop commas before other punctuation marks, where a clause and its sentence end together."""
    following = [*words[1:], "."]
    return [word for word, after in zip(words, following, strict=True) if word != "," or after not in PUNCTUATION]


def capitalised(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[0].upper() + text[1:]


def chinese_text(words: list[str]) -> str:
    """Join Chinese words without spaces, except between words in Latin script."""
    pieces: list[str] = []
    latin = False
    for word in words:
        pieces.append(" " + word if latin and word[0].isascii() else word)
        latin = word[-1].isascii()
    return "".join(pieces)

"""The parts that search queries are made of: towns, people, wares, errands, and the four sides under way."""

from dataclasses import dataclass
from random import Random

from pipeline.grammar import english, french, german
from pipeline.grammar.choice import NAMES, Zipf, by_class, held_out_combination, nouns_of
from pipeline.grammar.lexicon.reading import Deed, adjectives, deed, noun, phrase
from pipeline.grammar.lexicon.tables import read_tables
from pipeline.grammar.structure import Determiner, Facts, Name, NounPhrase
from pipeline.grammar.words import Adjective, Noun, Phrase

QUERIES = read_tables("queries")
NOUNS = by_class(QUERIES["nouns"].each(noun))
ADJECTIVES = adjectives(QUERIES)
ADJECTIVES_OF: dict[Noun, list[Adjective]] = {
    noun: [adjective for adjective in ADJECTIVES if adjective.classes & noun.classes]
    for nouns in NOUNS.values()
    for noun in nouns
}
ERRANDS = Zipf(QUERIES["errands"].each(deed), 8)
DEEDS = Zipf([*ERRANDS.items, *QUERIES["chores"].each(deed)], 8)
OBJECTS = {deed: Zipf(nouns_of(NOUNS, deed.objects), 6) for deed in DEEDS.items}
CLASS = {name: Zipf(nouns, 6) for name, nouns in NOUNS.items()}
TABLES = {name: Zipf(table.each(phrase), 6) for name, table in read_tables("query_phrases").items()}


@dataclass(slots=True)
class Query:
    """The four sides: an English tree without TOP, and words."""

    en: str
    de: list[str]
    fr: list[str]
    zh: list[str]


class QueryParts:
    """Draws names, noun phrases and deeds for queries, and notes them in `facts`.

    held_out: allow the names and the combinations of deed and object that are left to the test split.
    """

    def __init__(self, rng: Random, held_out: bool):
        self.rng = rng
        self.held_out = held_out
        self.facts = Facts(kinds={"query"})

    def pick(self, table: str) -> Phrase:
        return TABLES[table](self.rng)

    def town(self) -> Name:
        return self._noted(NAMES.town(self.rng, self.held_out))

    def person(self) -> Name:
        return self._noted(NAMES.full(self.rng, self.held_out))

    def _noted(self, name: Name) -> Name:
        self.facts.names.append(name)
        self.facts.kinds.add("unseen_name" if name.unseen else "name")
        return name

    def noun_phrase(
        self, noun: Noun, determiner: Determiner, plural: bool = False, adjective: float = 0.6
    ) -> NounPhrase:
        """`adjective`: the probability of one."""
        np = NounPhrase(noun, determiner, plural)
        fitting = ADJECTIVES_OF[noun]
        if fitting and self.rng.random() < adjective:
            np.adjectives = (self.rng.choice(fitting),)
            if np.adjectives[0].en == "best" and determiner == "a":
                np.determiner = "the"
            self.facts.kinds.add("adjective")
        self.facts.nouns.append(noun)
        return np

    def of_class(self, name: str, determiner: Determiner, plural: bool = False, adjective: float = 0.6) -> NounPhrase:
        return self.noun_phrase(CLASS[name](self.rng), determiner, plural, adjective)

    def deed(self, deeds: Zipf[Deed]) -> tuple[Deed, Noun]:
        """Something to do and what to do it with."""
        deed = deeds(self.rng)
        while True:
            noun = OBJECTS[deed](self.rng)
            if not held_out_combination(deed.en, noun):
                return deed, noun
            if self.held_out:
                self.facts.kinds.add("unseen_combination")
                self.facts.combinations.append(f"{deed.en} {noun.en[0]}")
                return deed, noun

    def maybe_day(self, probability: float = 0.5) -> Phrase:
        """A day or nothing."""
        return self.pick("days") if self.rng.random() < probability else Phrase("", (), (), ())


def joined(label: str, *parts: str) -> str:
    return f"({label} {' '.join(part for part in parts if part)})"


def in_english(town: Name) -> str:
    return f"(PP (IN in) {english.noun_phrase(town)})"


def sides(np: NounPhrase) -> tuple[str, list[str], list[str], list[str]]:
    """A noun phrase that is a query of its own, in four languages."""
    return english.noun_phrase(np), german.noun_phrase(np, german.NOMINATIVE), french.noun_phrase(np), bare_chinese(np)


def bare_chinese(np: NounPhrase) -> list[str]:
    """Without measure word or number."""
    return [*(word for adjective in np.adjectives for word in adjective.zh.split()), np.noun.zh]

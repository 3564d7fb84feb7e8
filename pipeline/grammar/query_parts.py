"""The parts that search queries are made of: towns, people, wares, errands."""

from random import Random

from pipeline.grammar.choice import NAMES, Drawer, Zipf, by_class, nouns_of
from pipeline.grammar.lexicon.reading import Deed, adjectives, deed, noun, phrase
from pipeline.grammar.lexicon.tables import read_tables
from pipeline.grammar.structure import Determiner, Name, NounPhrase
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


class QueryParts(Drawer):
    """Draws names, noun phrases and deeds for queries."""

    def __init__(self, rng: Random, held_out: bool):
        super().__init__(rng, held_out)
        self.facts.kinds.add("query")

    def pick(self, table: str) -> Phrase:
        return TABLES[table](self.rng)

    def person(self) -> Name:
        return self.noted(NAMES.full(self.rng, self.held_out))

    def noun_phrase(
        self, noun: Noun, determiner: Determiner, plural: bool = False, adjective: float = 0.6
    ) -> NounPhrase:
        """`adjective`: the probability of one."""
        np = NounPhrase(noun, determiner, plural)
        fitting = ADJECTIVES_OF[noun]
        if fitting and self.chance(adjective):
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
        return deed, self.object_of(deed.en, OBJECTS[deed], deed.en)

    def maybe_day(self, probability: float = 0.5) -> Phrase:
        """A day or nothing."""
        return self.pick("days") if self.chance(probability) else Phrase("", (), (), ())

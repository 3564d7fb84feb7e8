"""The search domain: queries, lower-case fragments without punctuation, the frequent patterns first.

A pattern is a function that draws the parts of one kind of query; query_patterns.txt says what becomes of them.
"""

from random import Random

from pipeline.grammar.choice import NAMES, Drawer, Zipf, by_class, nouns_of
from pipeline.grammar.lexicon.entries import Deed, adjectives, deed, noun, phrase
from pipeline.grammar.lexicon.tables import read_tables
from pipeline.grammar.query_text import Query, query
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


def draw_query(parts: QueryParts) -> Query:
    """One query of any pattern."""
    return PATTERNS(parts.rng)(parts)


def wares(parts: QueryParts) -> Query:
    np = parts.of_class("ware", "bare", plural=True)
    if "mobile" in np.noun.classes and parts.chance(0.5):
        found = query("with", np=np, part=parts.of_class("part", "a", adjective=1))
    else:
        found = query("for", np=np, group=parts.of_class("group", "bare", plural=True))
    return found if parts.chance(0.6) else query("under", wares=found, price=parts.pick("prices"))


def sites(parts: QueryParts) -> Query:
    np = parts.of_class("site", "bare", plural=True, adjective=0.8)
    town = parts.town()
    draw = parts.rng.random()
    if draw < 0.35:
        return query("sites near", np=np, town=town, near=parts.of_class("site", "the", adjective=0.1))
    if draw < 0.65 and "lodging" in np.noun.classes:
        return query("sites with", np=np, town=town, feature=parts.of_class("feature", "bare", adjective=0.4))
    return query("sites", np=np, town=town)


def how_to(parts: QueryParts) -> Query:
    deed, noun = parts.deed(DEEDS)
    np = parts.noun_phrase(noun, "a", adjective=0.5)
    np.plural = parts.chance(0.15)
    parts.facts.kinds.add("subordinate")
    return query("how to", deed=deed, np=np)


def errand(parts: QueryParts) -> Query:
    deed, noun = parts.deed(ERRANDS)
    parts.facts.kinds.add("infinitive")
    return query("errand", deed=deed, np=parts.noun_phrase(noun, "bare"), town=parts.town())


def where_to(parts: QueryParts) -> Query:
    deed, noun = parts.deed(ERRANDS)
    parts.facts.kinds.add("infinitive")
    return query("where to", deed=deed, np=parts.noun_phrase(noun, "a", plural=parts.chance(0.5)), town=parts.town())


def rent(parts: QueryParts) -> Query:
    parts.facts.kinds.add("infinitive")
    return query("rent", np=parts.of_class("hired", "a"), town=parts.town(), days=parts.pick("amounts"))


def cost(parts: QueryParts) -> Query:
    np = parts.of_class("ware", "a")
    return query("cost in", np=np, town=parts.town()) if parts.chance(0.5) else query("cost", np=np)


def hours(parts: QueryParts) -> Query:
    parts.facts.kinds.add("genitive")
    np = parts.of_class("open", "the", adjective=0.15)
    return query("hours", np=np, town=parts.town(), day=parts.maybe_day(0.3))


def difference(parts: QueryParts) -> Query:
    name = parts.rng.choice(("device", "appliance", "vehicle", "furniture", "lodging", "animal"))
    one, other = (parts.noun_phrase(noun, "a", adjective=0.25) for noun in parts.rng.sample(NOUNS[name], 2))
    return query("difference", one=one, other=other)


def town_topic(parts: QueryParts) -> Query:
    return query("town topic", topic=parts.pick("town topics"), town=parts.town(), day=parts.maybe_day(0.75))


def journey(parts: QueryParts) -> Query:
    vehicle, start, goal = parts.pick("transport"), parts.town(), parts.town()
    return query("journey", vehicle=vehicle, start=start, goal=goal, day=parts.maybe_day())


def works(parts: QueryParts) -> Query:
    table = "works" if parts.chance(0.5) else "life"
    return query(table, topic=parts.pick(table), person=parts.person())


def who(parts: QueryParts) -> Query:
    person = parts.person()
    pattern = parts.rng.choice(("how old", "where", "when", "to whom"))
    return query(pattern, person=person, feminine="e" if person.gender == "f" else "")


def recipe(parts: QueryParts) -> Query:
    dish = parts.pick("dishes")
    first, second, third = parts.rng.sample(TABLES["ingredients"].items, 3)
    found = query("two ingredients" if parts.chance(0.35) else "one ingredient", first=first, second=second)
    if parts.chance(0.35):
        found = query("and without", others=found, third=third)
    return query("recipe", dish=dish, ingredients=found)


def disease(parts: QueryParts) -> Query:
    remedy, disease = parts.pick("remedies"), parts.pick("diseases")
    whom = parts.of_class(parts.rng.choice(("group", "animal")), "bare", plural=True, adjective=0)
    pattern = "home remedies" if remedy.de == ("hausmittel",) else "disease"
    return query(pattern, remedy=remedy, disease=disease, whom=whom, theirs=NounPhrase(whom.noun, "the", plural=True))


def jobs(parts: QueryParts) -> Query:
    town = parts.town()
    if parts.chance(0.5):
        return query("jobs", trade=parts.of_class("trade", "bare", plural=True), town=town)
    parts.facts.kinds.add("genitive")
    return query("salary", trade=parts.of_class("trade", "a"), town=town)


def may_eat(parts: QueryParts) -> Query:
    eater = parts.of_class("animal", "bare", plural=True, adjective=0)
    food = parts.of_class("edible", "a", plural=True, adjective=0)
    return query("may eat", eater=eater, eaters=NounPhrase(eater.noun, "the", plural=True), food=food)


def outing(parts: QueryParts) -> Query:
    parts.facts.kinds.add("infinitive")
    town, day = parts.town(), parts.maybe_day()
    return query("outing", town=town, day=day, group=parts.of_class("group", "a", plural=True, adjective=0))


FREQUENT = (sites, errand, how_to, wares, where_to, journey, works, rent, recipe)
RARER = (cost, town_topic, outing, who, hours, disease, jobs, difference, may_eat)
PATTERNS = Zipf([*FREQUENT, *RARER], 12)

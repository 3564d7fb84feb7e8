"""The search domain: queries, lower-case fragments without punctuation, the frequent patterns first.

A pattern is a function that draws the parts of one kind of query; query_patterns.txt says what becomes of them.
"""

from pipeline.grammar.choice import Zipf
from pipeline.grammar.query_parts import DEEDS, ERRANDS, NOUNS, TABLES, QueryParts
from pipeline.grammar.query_text import Query, query
from pipeline.grammar.structure import NounPhrase


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

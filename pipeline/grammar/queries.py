"""The search domain: queries, lower-case fragments without punctuation, frequent patterns first.

A pattern is a function that draws the parts of one kind of query. query_patterns.txt has their templates in four
languages, whose gaps are filled with noun phrases and words.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random

from pipeline.grammar import chinese, english, french, german
from pipeline.grammar.choice import NAMES, Drawer, Zipf, by_class, nouns_of
from pipeline.grammar.lexicon.entries import Task, adjectives, noun, phrase, task
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
ERRANDS = Zipf(QUERIES["errands"].each(task), 8)
TASKS = Zipf([*ERRANDS.items, *QUERIES["chores"].each(task)], 8)
OBJECTS = {task: Zipf(nouns_of(NOUNS, task.objects), 6) for task in TASKS.items}
CLASS = {name: Zipf(nouns, 6) for name, nouns in NOUNS.items()}
TABLES = {name: Zipf(table.each(phrase), 6) for name, table in read_tables("query_phrases").items()}


@dataclass(slots=True)
class Query:
    """A query in four languages: an English tree without TOP, and words of the others."""

    en: str
    de: list[str]
    fr: list[str]
    zh: list[str]


Part = Query | NounPhrase | Name | Phrase | Task
TEMPLATES = {name: table.each(str) for name, table in read_tables("query_patterns").items()}
GAP = re.compile(r"( ?)\{(\w+):?(\w*)\}")
CASES = {"N": german.NOMINATIVE, "A": german.ACCUSATIVE, "D": german.DATIVE, "G": german.GENITIVE}


def query(pattern: str, **parts: Part | str) -> Query:
    """Return a query of a pattern of query_patterns.txt."""
    en, de, fr, zh = TEMPLATES[pattern]
    return Query(
        filled(en, parts, in_english),
        filled(de, parts, in_german).split(),
        filled(fr, parts, in_french).split(),
        filled(zh, parts, in_chinese).split(),
    )


def filled(template: str, parts: Mapping[str, Part | str], realise: Callable[[Part, str], str | Iterable[str]]) -> str:
    """Return a filled template; an empty part also removes the space before it.

    Args:
        template: Text with gaps, `{part}` or `{part:mark}`.
        parts: Parts by name.
        realise: Returns a part in one language, for a mark.
    """

    def text(gap: re.Match) -> str:
        space, name, mark = gap.groups()
        part = parts[name]
        found = part if isinstance(part, str) else realise(part, mark)
        found = found if isinstance(found, str) else " ".join(found)
        return found and space + found

    return GAP.sub(text, template)


def in_english(part: Part, mark: str) -> str:
    """Return a part in English."""
    return english.noun_phrase(part) if isinstance(part, NounPhrase | Name) else part.en


def in_german(part: Part, mark: str) -> str | Iterable[str]:
    """Return a part in German; the `mark` is a case (N, A, D or G), or 3 for the third person of a task."""
    match part:
        case NounPhrase():
            return german.noun_phrase(part, CASES[mark])
        case Name():
            return part.text
        case Task() if mark == "3":
            return part.de_third
    return part.de


def in_french(part: Part, mark: str) -> str | Iterable[str]:
    """Return a part in French; the `mark` is a preposition before it."""
    match part:
        case NounPhrase():
            words = french.noun_phrase(part)
        case Name() | Task():
            return part.text if isinstance(part, Name) else part.fr
        case _:
            words = list(part.fr)
    return french.with_preposition(mark, words) if mark else words


def in_chinese(part: Part, mark: str) -> str | Iterable[str]:
    """Return a part in Chinese, without measure word and number unless the `mark` is `counted`."""
    match part:
        case NounPhrase() if mark == "counted":
            return chinese.noun_phrase(part)
        case NounPhrase():
            return [*(adjective.zh for adjective in part.adjectives), part.noun.zh]
        case Name():
            return part.text
    return part.zh


class QueryParts(Drawer):
    """Random names, noun phrases and tasks for queries."""

    def __init__(self, rng: Random, held_out: bool):
        super().__init__(rng, held_out)
        self.notes.kinds.add("query")

    def pick(self, table: str) -> Phrase:
        """Draw a phrase of a table."""
        return TABLES[table](self.rng)

    def person(self) -> Name:
        """Draw a full name and note it."""
        return self.note_name(NAMES.full(self.rng, self.held_out))

    def noun_phrase(
        self, noun: Noun, determiner: Determiner, plural: bool = False, adjective: float = 0.6
    ) -> NounPhrase:
        """Return a drawn noun phrase, whose phenomena are noted.

        Args:
            noun: Its head.
            determiner: Its determiner.
            plural: Use the plural.
            adjective: Probability of an adjective.
        """
        np = NounPhrase(noun, determiner, plural)
        fitting = ADJECTIVES_OF[noun]
        if fitting and self.chance(adjective):
            np.adjectives = (self.rng.choice(fitting),)
            if np.adjectives[0].en == "best" and determiner == "a":
                np.determiner = "the"
            self.notes.kinds.add("adjective")
        self.notes.nouns.append(noun)
        return np

    def of_class(self, name: str, determiner: Determiner, plural: bool = False, adjective: float = 0.6) -> NounPhrase:
        """Return a drawn noun phrase with a noun of a class (see `noun_phrase`)."""
        return self.noun_phrase(CLASS[name](self.rng), determiner, plural, adjective)

    def task(self, tasks: Zipf[Task]) -> tuple[Task, Noun]:
        """Draw a task and its object."""
        task = tasks(self.rng)
        return task, self.object_of(task.en, OBJECTS[task], task.en)

    def maybe_day(self, probability: float = 0.5) -> Phrase:
        """Draw a day, or an empty phrase."""
        return self.pick("days") if self.chance(probability) else Phrase("", (), (), ())


def draw_query(parts: QueryParts) -> Query:
    """Draw one query of any pattern."""
    return PATTERNS(parts.rng)(parts)


def wares(parts: QueryParts) -> Query:
    """Draw a query for goods with a property or below a price."""
    np = parts.of_class("ware", "bare", plural=True)
    if "mobile" in np.noun.classes and parts.chance(0.5):
        found = query("with", np=np, part=parts.of_class("part", "a", adjective=1))
    else:
        found = query("for", np=np, group=parts.of_class("group", "bare", plural=True))
    return found if parts.chance(0.6) else query("under", wares=found, price=parts.pick("prices"))


def sites(parts: QueryParts) -> Query:
    """Draw a query for places in a town."""
    np = parts.of_class("site", "bare", plural=True, adjective=0.8)
    town = parts.town()
    draw = parts.rng.random()
    if draw < 0.35:
        return query("sites near", np=np, town=town, near=parts.of_class("site", "the", adjective=0.1))
    if draw < 0.65 and "lodging" in np.noun.classes:
        return query("sites with", np=np, town=town, feature=parts.of_class("feature", "bare", adjective=0.4))
    return query("sites", np=np, town=town)


def how_to(parts: QueryParts) -> Query:
    """Draw a query of how to do a task."""
    task, noun = parts.task(TASKS)
    np = parts.noun_phrase(noun, "a", adjective=0.5)
    np.plural = parts.chance(0.15)
    parts.notes.kinds.add("subordinate")
    return query("how to", task=task, np=np)


def errand(parts: QueryParts) -> Query:
    """Draw a query for a task in a town."""
    task, noun = parts.task(ERRANDS)
    parts.notes.kinds.add("infinitive")
    return query("errand", task=task, np=parts.noun_phrase(noun, "bare"), town=parts.town())


def where_to(parts: QueryParts) -> Query:
    """Draw a query of where to do a task in a town."""
    task, noun = parts.task(ERRANDS)
    parts.notes.kinds.add("infinitive")
    return query("where to", task=task, np=parts.noun_phrase(noun, "a", plural=parts.chance(0.5)), town=parts.town())


def rent(parts: QueryParts) -> Query:
    """Draw a query for renting something in a town."""
    parts.notes.kinds.add("infinitive")
    return query("rent", np=parts.of_class("hired", "a"), town=parts.town(), days=parts.pick("amounts"))


def cost(parts: QueryParts) -> Query:
    """Draw a query for the price of something."""
    np = parts.of_class("ware", "a")
    return query("cost in", np=np, town=parts.town()) if parts.chance(0.5) else query("cost", np=np)


def hours(parts: QueryParts) -> Query:
    """Draw a query for opening hours."""
    parts.notes.kinds.add("genitive")
    np = parts.of_class("open", "the", adjective=0.15)
    return query("hours", np=np, town=parts.town(), day=parts.maybe_day(0.3))


def difference(parts: QueryParts) -> Query:
    """Draw a query for the difference between two things."""
    name = parts.rng.choice(("device", "appliance", "vehicle", "furniture", "lodging", "animal"))
    one, other = (parts.noun_phrase(noun, "a", adjective=0.25) for noun in parts.rng.sample(NOUNS[name], 2))
    return query("difference", one=one, other=other)


def town_topic(parts: QueryParts) -> Query:
    """Draw a query for a topic in a town, perhaps on a day."""
    return query("town topic", topic=parts.pick("town topics"), town=parts.town(), day=parts.maybe_day(0.75))


def journey(parts: QueryParts) -> Query:
    """Draw a query for a journey between two towns."""
    vehicle, start, goal = parts.pick("transport"), parts.town(), parts.town()
    return query("journey", vehicle=vehicle, start=start, goal=goal, day=parts.maybe_day())


def works(parts: QueryParts) -> Query:
    """Draw a query for the works or the life of a person."""
    table = "works" if parts.chance(0.5) else "life"
    return query(table, topic=parts.pick(table), person=parts.person())


def who(parts: QueryParts) -> Query:
    """Draw a question about a person."""
    person = parts.person()
    pattern = parts.rng.choice(("how old", "where", "when", "to whom"))
    return query(pattern, person=person, feminine="e" if person.gender == "f" else "")


def recipe(parts: QueryParts) -> Query:
    """Draw a query for a recipe with ingredients."""
    dish = parts.pick("dishes")
    first, second, third = parts.rng.sample(TABLES["ingredients"].items, 3)
    found = query("two ingredients" if parts.chance(0.35) else "one ingredient", first=first, second=second)
    if parts.chance(0.35):
        found = query("and without", others=found, third=third)
    return query("recipe", dish=dish, ingredients=found)


def disease(parts: QueryParts) -> Query:
    """Draw a query for a remedy of a disease."""
    remedy, disease = parts.pick("remedies"), parts.pick("diseases")
    whom = parts.of_class(parts.rng.choice(("group", "animal")), "bare", plural=True, adjective=0)
    pattern = "home remedies" if remedy.de == ("hausmittel",) else "disease"
    return query(pattern, remedy=remedy, disease=disease, whom=whom, theirs=NounPhrase(whom.noun, "the", plural=True))


def jobs(parts: QueryParts) -> Query:
    """Draw a query for jobs or the salary of a trade."""
    town = parts.town()
    if parts.chance(0.5):
        return query("jobs", trade=parts.of_class("trade", "bare", plural=True), town=town)
    parts.notes.kinds.add("genitive")
    return query("salary", trade=parts.of_class("trade", "a"), town=town)


def may_eat(parts: QueryParts) -> Query:
    """Draw a query of whether an animal may eat something."""
    eater = parts.of_class("animal", "bare", plural=True, adjective=0)
    food = parts.of_class("edible", "a", plural=True, adjective=0)
    return query("may eat", eater=eater, eaters=NounPhrase(eater.noun, "the", plural=True), food=food)


def outing(parts: QueryParts) -> Query:
    """Draw a query for an outing with a group."""
    parts.notes.kinds.add("infinitive")
    town, day = parts.town(), parts.maybe_day()
    return query("outing", town=town, day=day, group=parts.of_class("group", "a", plural=True, adjective=0))


FREQUENT = (sites, errand, how_to, wares, where_to, journey, works, rent, recipe)
RARER = (cost, town_topic, outing, who, hours, disease, jobs, difference, may_eat)
PATTERNS = Zipf([*FREQUENT, *RARER], 12)

"""Meaning that all languages realise: noun phrases, clauses and sentences, without word forms or order."""

from dataclasses import dataclass, field
from typing import Literal, TypeVar

from pipeline.grammar.words import Adjective, Noun, Phrase, Verb

Tense = Literal["past", "present", "future"]
Negation = Literal["", "not", "never"]
Question = Literal["", "yes", "where", "when", "why"]
Modal = Literal["", "want", "can", "must", "should"]

Determiner = Literal["the", "a", "this", "every", "some", "many", "number", "my", "bare", "no"]
Part = TypeVar("Part")

# Grammatical persons, as in the conjugation tables. English "you" is one person, familiar and singular.
ME, YOU, THIRD, WE, THEY = range(5)


@dataclass(slots=True)
class Pronoun:
    """A pronoun. Genders differ by language: `it` for a lamp is `sie` in German, `elle` in French."""

    person: int
    gender: str = "m"
    de_gender: str = "m"
    fr_gender: str = "m"
    human: bool = True

    @property
    def plural(self) -> bool:
        """Return whether the pronoun is plural."""
        return self.person >= WE


@dataclass(slots=True)
class Name:
    """A person's or town's name; `title` is Mr or Mrs."""

    text: str
    gender: str
    title: str = ""
    unseen: bool = False
    town: bool = False
    person: int = THIRD
    plural: bool = False
    de_gender = fr_gender = property(lambda self: self.gender)


@dataclass(slots=True)
class NounPhrase:
    """A noun with its determiner and modifiers.

    Attributes:
        determiner: the, a (none in the plural), this, every, some, many, number (with `number`), my (with `owner`),
            bare (none, as in queries), or no (an indefinite object in a negated clause).
    """

    noun: Noun
    determiner: Determiner
    plural: bool = False
    number: Phrase | None = None
    owner: Pronoun | None = None
    adjectives: tuple[Adjective, ...] = ()
    place: "Place | None" = None
    genitive: "NounPhrase | Name | None" = None
    relative: "Relative | None" = None

    person = property(lambda self: THEY if self.plural else THIRD)
    gender = property(lambda self: self.noun.gender)
    de_gender = property(lambda self: self.noun.de_gender)
    fr_gender = property(lambda self: self.noun.fr_gender)


@dataclass(slots=True)
class Pair:
    """Two nominals joined by and."""

    first: "Name | NounPhrase"
    second: "Name | NounPhrase"
    person: int = THEY
    plural: bool = True
    gender: str = "m"
    de_gender: str = "m"

    @property
    def fr_gender(self) -> str:
        """Return the French gender: feminine if both parts are."""
        return "f" if self.first.fr_gender == self.second.fr_gender == "f" else "m"


Nominal = Pronoun | Name | NounPhrase | Pair


def required(part: Part | None) -> Part:
    """Return a part that its construction always has.

    Raises:
        ValueError: The part is missing.
    """
    if part is None:
        raise ValueError("a construction lacks a part that it always has")
    return part


def required_nominal(nominal: Nominal | None) -> Nominal:
    """Return a nominal that its clause always has; `required` would lose its type.

    Raises:
        ValueError: The nominal is missing.
    """
    if nominal is None:
        raise ValueError("a clause lacks a noun phrase that it always has")
    return nominal


def is_heavy(nominal: Nominal | None) -> bool:
    """Return whether a nominal ends in a relative clause; such objects come last."""
    return isinstance(nominal, NounPhrase) and nominal.relative is not None


@dataclass(slots=True)
class Place:
    """A place: `location` is in, on or at; towns are Names."""

    location: str
    ground: NounPhrase | Name


@dataclass(slots=True)
class Relative:
    """A relative clause. Its head is the subject or object of the clause, whose slot is None."""

    role: Literal["subject", "object"]
    clause: "Clause"


@dataclass(slots=True)
class Clause:
    """One verb with arguments and adjuncts. A predicate adjective or `there is` replaces the verb."""

    subject: Nominal | None
    verb: Verb | None
    tense: Tense
    object: Nominal | None = None
    recipient: Nominal | None = None
    predicate: Adjective | None = None
    exists: bool = False
    negation: Negation = ""
    modal: Modal = ""
    time: Phrase | None = None
    time_first: bool = False
    frequency: Phrase | None = None
    manner: Phrase | None = None
    place: Place | None = None
    companion: Nominal | None = None
    complement: "Clause | None" = None  # of a c or q verb
    infinitive: "Clause | None" = None  # of a v verb; its subject is None
    agreement: Nominal | None = None  # whom a subjectless clause agrees with

    @property
    def agent(self) -> Nominal | None:
        """Return the nominal that the verb agrees with."""
        return self.subject if self.subject is not None else self.agreement

    @property
    def person(self) -> int:
        """Return the person of the finite verb: third without an agent (there is, es gibt, il y a)."""
        return THIRD if self.agent is None else self.agent.person

    @property
    def asks_whether(self) -> bool:
        """Return whether the complement starts with whether instead of that."""
        return self.verb is not None and self.verb.frame == "q"


@dataclass(slots=True)
class Statement:
    """A main clause with an optional subordinate clause and an optional coordinated statement."""

    main: Clause
    subordinator: Phrase | None = None
    subordinate: Clause | None = None
    subordinate_first: bool = False
    opener: Phrase | None = None
    coordinator: Phrase | None = None
    rest: "Statement | None" = None


@dataclass(slots=True)
class Utterance:
    """A sentence of the film domain. A question is `yes`, or asks where, when or why."""

    statement: Statement
    question: Question = ""
    interjection: Phrase | None = None
    vocative: Name | None = None

    def opening(self, language: Literal["de", "fr", "zh"], comma: str = ",") -> list[str]:
        """Return the interjection and the vocative before the sentence, with the `comma` of the `language`."""
        called = [] if self.interjection is None else [*getattr(self.interjection, language), comma]
        return called if self.vocative is None else [*called, *self.vocative.text.split(), comma]


@dataclass(slots=True)
class DerivationNotes:
    """Phenomena that were noted during a derivation."""

    kinds: set[str] = field(default_factory=set)
    names: list[Name] = field(default_factory=list)
    verbs: list[Verb] = field(default_factory=list)
    nouns: list[Noun] = field(default_factory=list)
    combinations: list[str] = field(default_factory=list)
    verb_final: list[Clause] = field(default_factory=list)  # clauses with the verb last in German

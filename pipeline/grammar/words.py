"""Entries of the lexicon: one frozen record per noun, adjective, verb and phrase."""

from dataclasses import dataclass
from typing import Literal

Gender = Literal["m", "f", "n"]
Location = Literal["in", "on", "at", "shore", ""]
Frame = Literal["t", "i", "d", "g", "c", "q", "v"]


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun with its forms, `en[plural]`, `fr[plural]` and `de[case][plural]` (cases N, A, D, G)."""

    key: str
    classes: frozenset[str]
    gender: Gender  # of English and Chinese pronouns: people are m or f, the rest n
    en: tuple[str, str]
    de: tuple[tuple[str, str], ...]
    de_gender: Gender
    fr: tuple[str, str]
    fr_gender: Gender
    zh: str
    measure: str
    location: Location

    @property
    def ambiguous(self) -> bool:
        """Return whether another noun has the same English word."""
        return "#" in self.key


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective with its forms."""

    en: str
    de: str
    de_stem: str
    fr: dict[tuple[str, bool], str]  # (gender, plural)
    fr_before_vowel: str  # masculine singular before a vowel: vieil
    fr_before_noun: bool
    zh: str
    zh_predicate: str  # follows 很; with a leading = it stands in 是…的
    classes: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class EnglishVerb:
    """An English verb with its forms."""

    base: str
    third: str
    past: str
    particle: str  # "up" of wake up
    preposition: str  # "for" of wait for
    fixed: str  # tree of an idiom's words after the object


@dataclass(frozen=True, slots=True, eq=False)
class GermanVerb:
    """A German verb with its forms."""

    infinitive: str
    prefix: str  # separable
    present: tuple[str, ...]  # ich, du, er, wir, sie; without the prefix
    past: tuple[str, ...]
    participle: str
    zu_infinitive: tuple[str, ...]
    with_sein: bool
    reflexive: bool
    preposition: str
    case: int  # of the object
    fixed: tuple[str, ...]  # an idiom's words before the closing verb


@dataclass(frozen=True, slots=True, eq=False)
class FrenchVerb:
    """A French verb with its forms."""

    infinitive: str
    present: tuple[str, ...]  # je, tu, il, nous, ils
    future: tuple[str, ...]
    imperfect: tuple[str, ...]
    participle: str
    with_etre: bool
    reflexive: bool
    preposition: str
    fixed: tuple[str, ...]  # an idiom's words after the verb

    @property
    def direct(self) -> bool:
        """Return whether the object has no preposition."""
        return not self.preposition


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """One sense of a verb: a word per language, a frame, and classes of subjects and objects."""

    key: str
    frame: Frame
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    stative: bool
    idiom: bool
    placeless: bool  # goes with no adjunct of place
    en: EnglishVerb
    de: GermanVerb
    fr: FrenchVerb
    zh: tuple[str, ...]  # with "~" object, "^" recipient, "+" 了
    zh_definite: tuple[str, ...]  # with a definite object (把), if it differs

    @property
    def pronominal(self) -> bool:
        """Return whether a pronoun object has the simplest form in every language."""
        return not self.de.preposition and self.fr.direct and not self.fr.fixed and "~" in self.zh


@dataclass(frozen=True, slots=True, eq=False)
class Phrase:
    """A closed-class phrase: `en` is a tree or a word, the others are words."""

    en: str
    de: tuple[str, ...]
    fr: tuple[str, ...]
    zh: tuple[str, ...]

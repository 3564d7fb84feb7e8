"""Conversion of table rows to records with all forms of a word."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import get_args

from pipeline.grammar import words
from pipeline.grammar.lexicon import tables

GENDERS: dict[str, words.Gender] = {"m": "m", "mw": "m", "f": "f", "n": "n"}  # mw: masculine, declined weakly
FRAMES: dict[str, words.Frame] = {frame: frame for frame in get_args(words.Frame)}
CASES = {"N": 0, "A": 1, "D": 2, "G": 3}
LOCATIONS: tuple[words.Location, ...] = ("in", "on", "at", "shore")
ENGLISH_PARTICLES = frozenset({"up", "back"})


def noun(classes: str, gender: str, english: str, german: str, french: str, chinese: str) -> words.Noun:
    """Return the noun of a row, with all its forms.

    Args:
        classes: Semantic classes and location.
        gender: Gender of English and Chinese pronouns.
        english: Singular, perhaps `#sense`, and irregular plural after `/`.
        german: Gender, singular and plural.
        french: Gender, singular and irregular plural.
        chinese: Word and measure word.
    """
    key, _, en_plural = english.partition("/")
    en_singular = key.split("#")[0]
    de_gender, _, de_forms = german.partition(" ")
    de_singular, _, de_plural = de_forms.partition("/")
    fr_gender, _, fr_forms = french.partition(" ")
    fr_singular, _, fr_plural = fr_forms.partition("/")
    zh, measure = chinese.split()
    return words.Noun(
        key=key,
        classes=frozenset([*classes.split(), key]),
        gender=GENDERS[gender],
        en=(en_singular, en_plural or en_singular + "s"),
        de=_decline(de_singular, de_plural, de_gender),
        de_gender=GENDERS[de_gender],
        fr=(fr_singular, fr_plural or fr_singular + "s"),
        fr_gender=GENDERS[fr_gender],
        zh=zh,
        measure=measure,
        location=next((name for name in LOCATIONS if name in classes.split()), ""),
    )


def _decline(singular: str, plural: str, gender: str) -> tuple[tuple[str, str], ...]:
    """Return (singular, plural) in the four cases."""
    dative_plural = plural if plural.endswith(("n", "s")) else plural + "n"
    if gender == "mw":
        singulars = (singular, plural, plural, plural)
    elif gender == "f":
        singulars = (singular,) * 4
    else:
        singulars = (singular, singular, singular, _genitive(singular, plural))
    return tuple(zip(singulars, (plural, plural, dative_plural, plural), strict=True))


def _genitive(singular: str, plural: str) -> str:
    """Return the genitive of masculine and neuter nouns: des Tages, des Autos, des Geheimnisses, des Lehrers."""
    if singular.endswith(("nis", "us")) and not singular.endswith(("haus", "Haus")):
        return singular + "ses"
    syllables = len(re.findall("[aeiouyäöü]+", singular.lower()))
    short = syllables == 1 and singular[-1] not in "aeiou" and not plural.endswith("s")
    return singular + ("es" if short or singular.endswith(("s", "ß", "z")) else "s")


def adjectives(tables: Mapping[str, tables.Table]) -> list[words.Adjective]:
    """Convert the tables of adjectives, first those that precede the noun in French."""
    before, after = (tables[f"{place} the noun"].each for place in ("before", "after"))
    return before(partial(_adjective, True)) + after(partial(_adjective, False))


def _adjective(
    before_noun: bool, english: str, german: str, french: str, chinese: str, classes: str
) -> words.Adjective:
    de, _, de_stem = german.partition(":")
    forms = french.split("/")
    masculine, feminine = forms[:2]
    plural = forms[2] if len(forms) > 2 else masculine + "s"
    feminine_plural = feminine if feminine == "bon marché" else feminine + "s"
    zh, _, zh_predicate = chinese.rpartition("/")
    return words.Adjective(
        en=english,
        de=de,
        de_stem=de_stem or de,
        fr={("m", False): masculine, ("f", False): feminine, ("m", True): plural, ("f", True): feminine_plural},
        fr_before_vowel=forms[3] if len(forms) > 3 else masculine,
        fr_before_noun=before_noun,
        zh=zh,
        zh_predicate=zh_predicate,
        classes=frozenset(classes.split()),
    )


def verb(idiom: bool, english: str, german: str, french: str, chinese: str, *rest: str) -> words.Verb:
    """Return the verb of a row, with all its forms.

    Args:
        idiom: The verb is an idiom.
        english: Base form, then particle or preposition, or the fixed words of an idiom in brackets.
        german: Infinitive with `_` after a separable prefix, then preposition and case.
        french: Infinitive, then preposition.
        chinese: Template of words.
        *rest: Frame, subjects, objects and flags.
    """
    frame, subjects, objects, flags = rest
    zh, zh_definite = ([*cell.split()] for cell in [*chinese.split(" ; "), ""][:2])
    takes_object = frame in ("t", "g")
    stative = "s" in flags
    if zh[-1] == "-":
        zh.pop()
    elif "+" not in zh and not stative:
        zh.append("+")
    if takes_object and "~" not in zh:
        zh.append("~")
    return words.Verb(
        key=f"{english.split(' [')[0]}/{chinese}" if not idiom else " ".join(_leaves(english)),
        frame=FRAMES[frame],
        subjects=tuple(subjects.split()),
        objects=tuple(objects.split()),
        stative=stative,
        placeless="p" in flags,
        idiom=idiom,
        en=_english_verb(english),
        de=_german_verb(german),
        fr=_french_verb(french),
        zh=tuple(zh),
        zh_definite=tuple(zh_definite),
    )


def _leaves(cell: str) -> list[str]:
    """Return the words of `kick [(NP (DT the) (NN bucket))]`."""
    head, _, fixed = cell.partition(" [")
    return [head, *re.findall(r" ([^ ()]+)\)", fixed)]


def _split_fixed(cell: str) -> tuple[list[str], str]:
    """Split `beißen D [ins Gras]` into [beißen, D] and `ins Gras`."""
    before, _, rest = cell.partition("[")
    fixed, _, after = rest.rpartition("]")
    return (before + after).split(), fixed


def _english_verb(cell: str) -> words.EnglishVerb:
    (base, *rest), fixed = _split_fixed(cell)
    word = rest[0] if rest else ""
    particle = word if word in ENGLISH_PARTICLES else ""
    return words.EnglishVerb(*tables.english_forms(base), particle, "" if particle else word, fixed)


def _german_verb(cell: str) -> words.GermanVerb:
    parts, fixed = _split_fixed(cell)
    reflexive = parts[0] == "sich"
    verb, *marker = parts[1:] if reflexive else parts
    preposition, _, case = marker[0].rpartition("+") if marker else ("", "", "A")
    prefix, _, base = verb.rpartition("_")
    present, past, participle = tables.german_forms(base)
    return words.GermanVerb(
        infinitive=prefix + base,
        prefix=prefix,
        present=present,
        past=past,
        participle=prefix + participle,
        zu_infinitive=(f"{prefix}zu{base}",) if prefix else ("zu", base),
        with_sein=verb in tables.GERMAN_WITH_SEIN,
        reflexive=reflexive,
        preposition=preposition,
        case=CASES[case],
        fixed=tuple(fixed.split()),
    )


def _french_verb(cell: str) -> words.FrenchVerb:
    parts, fixed = _split_fixed(cell)
    reflexive = parts[0] == "se"
    verb, *marker = parts[1:] if reflexive else parts
    present, future, imperfect, participle = tables.french_forms(verb)
    return words.FrenchVerb(
        infinitive=verb,
        present=present,
        future=future,
        imperfect=imperfect,
        participle=participle,
        with_etre=reflexive or verb in tables.FRENCH_WITH_ETRE,
        reflexive=reflexive,
        preposition=marker[0] if marker else "",
        fixed=tuple(fixed.split()),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A task in a query: infinitives, and the German third person (`wie man … repariert`)."""

    en: str
    de: str
    de_third: str
    fr: str
    zh: str
    objects: tuple[str, ...]


def task(english: str, german: str, french: str, chinese: str, objects: str) -> Task:
    """Return the task of a row (see `verb`)."""
    verb = _german_verb(german)
    return Task(english, verb.infinitive, verb.prefix + verb.present[2], french, chinese, tuple(objects.split()))


def phrase(english: str, german: str, french: str, chinese: str) -> words.Phrase:
    """Return the phrase of a row, whose `english` is a tree or word (see `noun`)."""
    return words.Phrase(english, tuple(german.split()), tuple(french.split()), tuple(chinese.split()))

"""Queries in four languages at once, from templates whose gaps are filled with parts of them."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pipeline.grammar import chinese, english, french, german
from pipeline.grammar.lexicon.entries import Deed
from pipeline.grammar.lexicon.tables import read_tables
from pipeline.grammar.structure import Name, NounPhrase
from pipeline.grammar.words import Phrase


@dataclass(slots=True)
class Query:
    """The four sides: an English tree without TOP, and words."""

    en: str
    de: list[str]
    fr: list[str]
    zh: list[str]


Part = Query | NounPhrase | Name | Phrase | Deed
PATTERNS = {name: table.each(str) for name, table in read_tables("query_patterns").items()}
GAP = re.compile(r"( ?)\{(\w+):?(\w*)\}")
CASES = {"N": german.NOMINATIVE, "A": german.ACCUSATIVE, "D": german.DATIVE, "G": german.GENITIVE}


def query(pattern: str, **parts: Part | str) -> Query:
    """A query of a pattern in query_patterns.txt, its gaps filled; a text is the same in every language."""
    en, de, fr, zh = PATTERNS[pattern]
    return Query(
        filled(en, parts, in_english),
        filled(de, parts, in_german).split(),
        filled(fr, parts, in_french).split(),
        filled(zh, parts, in_chinese).split(),
    )


def filled(template: str, parts: Mapping[str, Part | str], realise: Callable[[Part, str], str | Iterable[str]]) -> str:
    """The template with its parts; where one is nothing, the space before it goes too."""

    def text(gap: re.Match) -> str:
        space, name, mark = gap.groups()
        part = parts[name]
        found = part if isinstance(part, str) else realise(part, mark)
        found = found if isinstance(found, str) else " ".join(found)
        return found and space + found

    return GAP.sub(text, template)


def in_english(part: Part, mark: str) -> str:
    return english.noun_phrase(part) if isinstance(part, NounPhrase | Name) else part.en


def in_german(part: Part, mark: str) -> str | Iterable[str]:
    match part:
        case NounPhrase():
            return german.noun_phrase(part, CASES[mark])
        case Name():
            return part.text
        case Deed() if mark == "3":
            return part.de_third
    return part.de


def in_french(part: Part, mark: str) -> str | Iterable[str]:
    """mark: a preposition in front."""
    match part:
        case NounPhrase():
            words = french.noun_phrase(part)
        case Name() | Deed():
            return part.text if isinstance(part, Name) else part.fr
        case _:
            words = list(part.fr)
    return french.with_preposition(mark, words) if mark else words


def in_chinese(part: Part, mark: str) -> str | Iterable[str]:
    """Without measure word or number, unless marked `counted`."""
    match part:
        case NounPhrase() if mark == "counted":
            return chinese.noun_phrase(part)
        case NounPhrase():
            return [*(adjective.zh for adjective in part.adjectives), part.noun.zh]
        case Name():
            return part.text
    return part.zh

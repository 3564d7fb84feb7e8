"""Queries in four languages, from templates whose gaps are filled with noun phrases and words."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pipeline.grammar import chinese, english, french, german
from pipeline.grammar.lexicon.entries import Task
from pipeline.grammar.lexicon.tables import read_tables
from pipeline.grammar.structure import Name, NounPhrase
from pipeline.grammar.words import Phrase


@dataclass(slots=True)
class Query:
    """A query in four languages: an English tree without TOP, and words of the others."""

    en: str
    de: list[str]
    fr: list[str]
    zh: list[str]


Part = Query | NounPhrase | Name | Phrase | Task
PATTERNS = {name: table.each(str) for name, table in read_tables("query_patterns").items()}
GAP = re.compile(r"( ?)\{(\w+):?(\w*)\}")
CASES = {"N": german.NOMINATIVE, "A": german.ACCUSATIVE, "D": german.DATIVE, "G": german.GENITIVE}


def query(pattern: str, **parts: Part | str) -> Query:
    """Return a query of a pattern of query_patterns.txt."""
    en, de, fr, zh = PATTERNS[pattern]
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

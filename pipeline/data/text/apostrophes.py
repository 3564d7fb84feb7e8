"""Spaces around apostrophes, which join words, replace letters, or close a quotation."""

import unicodedata

from pipeline.data.text.marks import Spaces, word_like

ELISIONS = frozenset({"fr", "it", "ca", "oc", "ga", "br", "co", "fur", "lij", "mt", "pms", "sc", "scn", "vec", "wa"})
"""Languages that end a word in an apostrophe before the next one: `l’eau`."""
TRUNCATED = {
    "it": frozenset({"po", "mo", "be", "to", "di", "va", "fa", "da", "sta", "ca"}),
    "mt": frozenset({"ta", "ma", "sa", "fa", "bi"}),
}
"""Words that end in an apostrophe before a space, in languages with elision: `un po’ di`."""
ENGLISH_CLITICS = frozenset({"s", "t", "d", "m", "re", "ve", "ll", "em", "cause", "clock", "n"})
"""Endings after an apostrophe inside an English word."""
GERMAN_CLITICS = frozenset({"s", "n", "ne", "nen", "nem", "ner", "m", "r", "se", "damm"})
"""Endings after an apostrophe inside a German word: `geht’s`, `so’n`."""
LEADING = frozenset({"tis", "twas", "til", "em", "cause", "cos", "n", "round", "bout"})
"""English words whose first letter an apostrophe replaces."""
LONGEST_ENCLITIC = 3
"""Most letters of a word that follows an apostrophe, as in `geht's`."""

OPENING = frozenset("“«‹„")
"""Quotation marks that follow an elision: `l’“amico”`."""


def apostrophe(left: str, right: str, language: str, quoted: bool) -> Spaces | None:
    """Return the spaces around `’` if it is an apostrophe, None if it is a quotation mark.

    Args:
        left: The token before it, or empty.
        right: The token after it, or empty.
        language: ISO 639 code.
        quoted: A quotation is open that `’` closes.
    """
    if not word_like(right[:1]):
        elided = language in ELISIONS and not quoted and right in OPENING and word_like(left[-1:])
        return (False, False) if elided and plain_letter(left[-1]) not in "aeiou" else None
    if not word_like(left[-1:]):
        return None if quoted else (None, False)
    if right[0].isdecimal() and left[-1].isalpha():
        return None if quoted else (True, False)
    if language == "en":
        clitic = right.lower() in ENGLISH_CLITICS or (len(left) == 1 and (left.isupper() or left == "y"))
        possessive = left[-1:].lower() == "s" and not quoted
        return (False, False) if clitic else (False, True) if possessive else None if quoted else (False, False)
    if language in ELISIONS:
        if left.lower() in TRUNCATED.get(language, ()):
            return False, True
        return None if quoted and not elides(left, right) else (False, False)
    if quoted:
        return None
    return False, not is_joined(left, right, language)


def is_joined(left: str, right: str, language: str) -> bool:
    """Return whether an apostrophe between two tokens stands inside a word, in languages without elision."""
    if language == "el":
        return False
    if language == "de":
        return right.rstrip(".").lower() in GERMAN_CLITICS or right.startswith("sch") or len(left) <= 2
    return True


def elides(left: str, right: str) -> bool:
    """Return whether an apostrophe can stand for a vowel between two tokens: `qu’il`, not `oui’ dit`."""
    return plain_letter(left[-1]) not in "aeiou" and plain_letter(right[0]) in "aeiouyh"


def straight_apostrophe(left: str, right: str, single: bool, quoted: bool, language: str) -> Spaces:
    """Return the spaces around `'`, which Moses takes for a quotation mark unless the language has elision.

    Args:
        left: The token before it, or empty.
        right: The token after it, or empty.
        single: It is the only one in the line, so that it quotes nothing.
        quoted: Another one follows.
        language: ISO 639 code.
    """
    if not word_like(left[-1:]) or not word_like(right[:1]) or language in ELISIONS:
        return None, None
    if language in ("uk", "be") and right[0].lower() in "яюєїёеі":
        return False, False
    if right[0].isdecimal():
        return (False, True) if language == "he" else (None, None)
    if language == "en" and single and right.lower() in LEADING:
        return True, False
    if language in ("en", "de"):
        clitic = language == "de" and right.lower() in GERMAN_CLITICS
        return (False, not clitic) if single or clitic else (None, None)
    return (False, False) if len(right) <= (1 if quoted else LONGEST_ENCLITIC) else (None, None)


def plain_letter(character: str) -> str:
    """Return a letter without accents, in lower case."""
    return unicodedata.normalize("NFD", character)[0].lower()

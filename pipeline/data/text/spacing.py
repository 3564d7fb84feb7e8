"""Spaces between the tokens of Moses, whose own detokeniser knows ASCII alone.

Tables of languages follow the typographic rules of Unicode's CLDR and common style guides.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache

from pipeline.data.languages import is_unspaced
from pipeline.data.text.segmentation import UNSPACED

SPACED_GUILLEMETS = frozenset({"fr", "br"})
"""Languages that write `« oui »`."""
ELISIONS = frozenset({"fr", "it", "ca", "oc", "ga", "br", "co", "fur", "lij", "mt", "pms", "sc", "scn", "vec", "wa"})
"""Languages that end a word in an apostrophe before the next one: `l’eau`."""
CLITICS = frozenset({"s", "t", "d", "m", "re", "ve", "ll", "em", "cause", "clock", "n"})
"""English clitics, which follow an apostrophe."""
QUOTES = {"„": "“”„", "“": "”", "”": "”", "«": "»", "»": "«", "‚": "‘’", "‘": "’", "‹": "›", "›": "‹", "「": "」"}
"""Opening quotation marks with their closing ones."""
GLUE = frozenset("\u200b\u200c\u200d\u00ad\u2060\u2010\u2011\u05be·‧་׳״፡_")
"""Marks inside words: joiners, hyphens, and points and separators of some scripts."""
LEFT = frozenset("™®ºª°\u200e\u200f")
"""Symbols without a space before them, beside final punctuation."""
NOT_FINAL = frozenset("§¶†‡•※‖¿¡@#&/*\\\"'")
"""Punctuation of Unicode's class Po that does not end a phrase."""
LONGEST_ENCLITIC = 3
"""Most letters of a word that follows an apostrophe, as in `geht's`."""
FRENCH_SPACED = frozenset("?!:;%")


def correct_spaces(tokens: list[str], text: str, language: str) -> str:
    """Correct the spaces at marks that Moses does not know.

    Args:
        tokens: Tokens of one line.
        text: The same tokens as Moses joined them.
        language: ISO 639 code.

    Returns:
        The text with corrected spaces; unchanged if Moses changed more than spaces.
    """
    if text.isascii() and not UNKNOWN_ASCII & set(text):
        return text
    spaces = spaces_in(tokens, text)
    if spaces is None:
        return text
    for place, space in decide_spaces(tokens, language):
        spaces[place] = space
    return "".join(f"{token}{' ' * space}" for token, space in zip(tokens, [*spaces, False], strict=True))


UNKNOWN_ASCII = frozenset("_/$'")


def spaces_in(tokens: list[str], text: str) -> list[bool] | None:
    """Find the spaces between tokens in their joined text.

    Args:
        tokens: Tokens of one line.
        text: The tokens as Moses joined them.

    Returns:
        For each token but the last, whether a space follows it; None if the text differs in more than spaces.
    """
    spaces, end = [], 0
    for token in tokens:
        begin = end + (text[end : end + 1] == " " and bool(end))
        if not text.startswith(token, begin):
            return None
        spaces.append(begin > end)
        end = begin + len(token)
    return spaces[1:] if end == len(text) else None


def decide_spaces(tokens: list[str], language: str) -> Iterator[tuple[int, bool]]:
    """Yield the gaps between tokens that a rule here decides.

    Args:
        tokens: Tokens of one line.
        language: ISO 639 code.

    Yields:
        Index of the token before the gap, and whether the gap is a space.
    """
    opened: list[str] = []
    unspaced = is_unspaced(language)
    for place, token in enumerate(tokens):
        left = tokens[place - 1] if place else ""
        right = tokens[place + 1] if place + 1 < len(tokens) else ""
        before, after = spaces_around(token, left, right, tokens[place + 1 :], language, opened)
        if unspaced and left and (borders(left[-1]) or borders(token[0])):
            before = False
        if before is not None and place:
            yield place - 1, before
        if after is not None and right:
            yield place, after


def borders(character: str) -> bool:
    """Return whether no space stands beside a character in a script without spaces."""
    return bool(UNSPACED.match(character)) or unicodedata.east_asian_width(character) in "WF" or character in "“”‘’…—·"


def spaces_around(
    token: str, left: str, right: str, rest: list[str], language: str, opened: list[str]
) -> tuple[bool | None, bool | None]:
    """Return whether a space stands before and after a token; None = as Moses has it.

    Args:
        token: Token that the rules look at.
        left: Token before it, or empty.
        right: Token after it, or empty.
        rest: All tokens after it.
        language: ISO 639 code.
        opened: Stack of open quotation marks; changed here.
    """
    if token == "'":
        return straight_apostrophe(left, right, rest, language)
    if token.isascii() and token not in UNKNOWN_ASCII:
        return None, None
    if token == "’" and (found := apostrophe(left, right, language, opened)):
        return found
    if token in QUOTES or token in CLOSING:
        before, after = quotation(token, rest, language, opened)
        return (not is_opening(left) if before is None else before), after
    if token == "/":
        joined = word_like(left[-1:]) and word_like(right[:1])
        return (False, False) if joined else (None, None)
    if token in GLUE and not (token == "·" and language == "el"):
        return False, False
    if all(kind_of(character) == "currency" for character in token):
        return currency(left, right)
    if token == "–" and left.isdecimal() and right.isdecimal():
        return False, False
    if token == "−" and right[:1].isdecimal():
        return (True, False) if not left[-1:].isdecimal() else (None, None)
    kinds = {kind_of(character) for character in token}
    if kinds == {"opening"}:
        return not is_opening(left), False
    if kinds <= {"closing", "mark"}:
        spaced = language == "fr" and kinds == {"closing"} and token in FRENCH_SPACED
        return spaced, None
    return None, None


def straight_apostrophe(left: str, right: str, rest: list[str], language: str) -> tuple[bool | None, bool | None]:
    """Return the spaces around `'`, which Moses handles in English and languages with elision, not in `geht's`.

    Args:
        left: Token before the apostrophe, or empty.
        right: Token after it, or empty.
        rest: All tokens after it; another `'` makes a quotation possible.
        language: ISO 639 code.

    Returns:
        Whether a space stands before and after it; None leaves the gap to Moses.
    """
    known = language == "en" or language in ELISIONS
    if known or not (word_like(left[-1:]) and word_like(right[:1])):
        return None, None
    quoted = "'" in rest
    return (False, False) if len(right) <= (1 if quoted else LONGEST_ENCLITIC) else (None, None)


def apostrophe(left: str, right: str, language: str, opened: list[str]) -> tuple[bool, bool] | None:
    """Return the spaces around `’` if it is an apostrophe, None if it is a quotation mark.

    Args:
        left: Token before the mark, or empty.
        right: Token after it, or empty.
        language: ISO 639 code.
        opened: Stack of open quotation marks, which `’` may close.
    """
    if not (word_like(left[-1:]) and word_like(right[:1])):
        return None
    quoted = bool(opened) and "’" in QUOTES[opened[-1]]
    if language == "en":
        clitic = right.lower() in CLITICS or (len(left) == 1 and left.isupper())
        possessive = left[-1:].lower() == "s" and not quoted
        return (False, False) if clitic else (False, True) if possessive else None if quoted else (False, False)
    return None if quoted and language not in ELISIONS else (False, False)


def is_opening(token: str) -> bool:
    """Return whether no space follows a token, e.g. a bracket."""
    return bool(token) and (token in "([{/" or kind_of(token[-1]) == "opening")


CLOSING = frozenset("".join(QUOTES.values()))


def quotation(token: str, rest: list[str], language: str, opened: list[str]) -> tuple[bool | None, bool | None]:
    """Return the spaces around a quotation mark, and open or close a quotation.

    Args:
        token: The quotation mark.
        rest: All tokens after it.
        language: ISO 639 code.
        opened: Stack of open quotation marks; changed here.
    """
    spaced = language in SPACED_GUILLEMETS and token in "«»‹›"
    if opened and token in QUOTES[opened[-1]] and not (token == "„" and opened[-1] == "„" and "“" in rest):
        opened.pop()
        return spaced, None
    if token in CLOSING and not opens(token, rest):
        return spaced, None
    opened.append(token)
    return None, spaced


def opens(token: str, rest: list[str]) -> bool:
    """Return whether a mark that mostly closes opens here: `”so”`, `»so«`, `“so“`.

    Args:
        token: A quotation mark.
        rest: All tokens after it, where its counterpart may follow.
    """
    if token in "“„‘":
        return True
    second = QUOTES.get(token, "")
    following = next((one for one in rest if one in QUOTES or one in CLOSING), None)
    return token != "’" and following is not None and following in second


def currency(left: str, right: str) -> tuple[bool | None, bool | None]:
    """Return the spaces around a currency sign, which belongs to the number beside it.

    Args:
        left: Token before the sign, or empty.
        right: Token after it, or empty.
    """
    if right[:1].isdecimal() and not left[-1:].isdecimal():
        return None, False
    return True, True if right and (word_like(right[0])) else None


def word_like(character: str) -> bool:
    """Return whether a character, possibly empty, is a letter, a digit or a combining mark."""
    return bool(character) and unicodedata.category(character)[0] in "LNM"


@cache
def kind_of(character: str) -> str:
    """Return the role of a character in spacing: opening, closing, mark, currency or other."""
    category = unicodedata.category(character)
    if category == "Sc":
        return "currency"
    if category[0] == "M" or category == "No" or "\U0001f3fb" <= character <= "\U0001f3ff":
        return "mark"
    if category in ("Ps", "Pi") or character in "¿¡":
        return "opening"
    if category in ("Pe", "Pf") or character in LEFT or (category == "Po" and character not in NOT_FINAL):
        return "closing"
    return "other"

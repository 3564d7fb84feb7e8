"""Corrections to the spaces that Moses's detokeniser, which knows only ASCII, sets between tokens.

Tables of languages follow the typographic rules of Unicode's CLDR and common style guides.
"""

import re
import unicodedata
from collections.abc import Iterator

from pipeline.data.languages import base_language, is_unspaced
from pipeline.data.text import marks
from pipeline.data.text.segmentation import UNSPACED

SPACED_GUILLEMETS = frozenset({"fr", "br"})
"""Languages that write `« oui »`."""
REVERSED_GUILLEMETS = frozenset({"de", "da", "sl", "hr", "bs", "sr", "mk", "cs", "sk", "pl", "hu", "sv", "fi", "xx"})
"""Languages that may write `»so«` or `»so»`."""
GLUE = frozenset("\u200b\u200c\u200d\u00ad\u2060\u2010\u2011\u05be·‧་׳״፡_")
"""Marks inside words: joiners, hyphens, and points and separators of some scripts."""
INSIDE = frozenset(",.-")
"""Marks inside foreign names and numbers."""
FRENCH_SPACED = frozenset("?!:;%")
BETWEEN_DIGITS = frozenset(":٫٬′’")
"""Marks inside a number or a time: `2:30`."""
PRINTF = frozenset("sdiufxcgp")
"""Letters of placeholders such as `%s`."""
ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos", "nbsp"})
DEGREES = frozenset("CFK")
ARMENIAN_MARKS, ARMENIAN_VOWELS = frozenset("՛՜՞"), frozenset("աեէըիոօԱԵԷԸԻՈՕ")
KOREAN_PARTICLE = re.compile(
    r"(이?라[고는며면]|이?란|으?로|에|와|과|도|만|은|는|이|가|을|를|의|하고|까지|부터|처럼|보다)"
)
"""Particles that follow a Korean quotation without a space."""


def correct_spaces(tokens: list[str], text: str, language: str) -> str:
    """Return `text`, the `tokens` of a line as Moses joined them, with the spaces of the `language` at other marks.

    The text is unchanged if Moses changed more than spaces.
    """
    if not UNKNOWN.search(text):
        return text
    spaces = spaces_in(tokens, text)
    if spaces is None:
        return text
    for place, space in decide_spaces(tokens, language):
        spaces[place] = space
    return "".join(f"{token}{' ' * space}" for token, space in zip(tokens, [*spaces, False], strict=True))


UNKNOWN = re.compile(r"[^\x00-\x7f]|[_/$':#@%&+(]")
"""Characters beside which Moses may set spaces wrongly."""


def spaces_in(tokens: list[str], text: str) -> list[bool] | None:
    """Return whether a space follows each of the `tokens` but the last in `text`; None if more than spaces differ."""
    spaces, end = [], 0
    for token in tokens:
        begin = end + (text[end : end + 1] == " " and bool(end))
        if not text.startswith(token, begin):
            return None
        spaces.append(begin > end)
        end = begin + len(token)
    return spaces[1:] if end == len(text) else None


def decide_spaces(tokens: list[str], language: str) -> Iterator[tuple[int, bool]]:
    """Yield the index before each gap of `tokens` that a rule for the `language` decides, and if it is a space."""
    opened: list[str] = []
    unspaced, language = is_unspaced(language), base_language(language)
    after: bool | None = None
    single = tokens.count("'") == 1
    for place, token in enumerate(tokens):
        if is_word(token) and language != "ko":
            before = after = None
        else:
            at = marks.Context(tokens, place, language, opened, joined=after is False, single=single)
            before, after = spaces_around(token, at)
        if unspaced and stands_inside(token, tokens[place - 1 : place], tokens[place + 1 : place + 2]):
            before = after = False
        if unspaced and place and (forbids_space(tokens[place - 1][-1]) or forbids_space(token[0])):
            before = False
        if before is not None and place:
            yield place - 1, before
        if after is not None and place + 1 < len(tokens):
            yield place, after


def is_word(token: str) -> bool:
    """Return whether a token is a plain word or number; Moses sets the spaces around these, except in Korean."""
    return (token.isalpha() and token[0] not in marks.LEFT) or (token.isascii() and token.isalnum())


def forbids_space(character: str) -> bool:
    """Return whether text in a script without spaces has none beside this character."""
    return bool(UNSPACED.match(character)) or unicodedata.east_asian_width(character) in "WF" or character in "“”‘’…—·"


def stands_inside(token: str, left: list[str], right: list[str]) -> bool:
    """Return whether a mark is part of a number or foreign name, `5,000` or `UTF-8`, which segmenters of Chinese cut.

    `left` and `right` hold the token before and after it, if any.
    """
    around = [token[-1] for token in left] + [token[0] for token in right]
    if token not in INSIDE or len(around) < 2 or not "".join(around).isascii():
        return False
    return all(character.isdecimal() if token == "," else character.isalnum() for character in around)


def spaces_around(token: str, at: marks.Context) -> marks.Spaces:
    """Return whether a space stands before and after a token; None leaves the choice to Moses."""
    left, right, language = at.left, at.right, at.language
    if token in BETWEEN_DIGITS and left[-1:].isdecimal() and right[:1].isdecimal():
        return False, False
    if token.isascii():
        return ascii_spaces(token, at)
    if token == "’" and language in ("sv", "fi", "da") and marks.word_like(left[-1:]) and at.closes_later("’"):
        return (True, False) if marks.word_like(right[:1]) else (False, None)
    if token == "’" and not at.may_close and (found := shortened(at)):
        return found
    if token == "’" and (found := marks.apostrophe(left, right, language, at.may_close)):
        return found
    if token in marks.QUOTES or token in marks.CLOSING:
        before, after = quotation(token, at)
        return (not at.follows_opening if before is None else before), after
    if token in GLUE and not (token == "·" and language == "el"):
        return False, False
    if token in ARMENIAN_MARKS:
        return False, bool(ARMENIAN_VOWELS & set(right))
    if token == "°" and right in DEGREES:
        return language != "en" or None, False
    if all(marks.kind_of(character) == "currency" for character in token):
        return currency(at)
    if token in ("–", "—") and left.isdecimal() and right.isdecimal():
        return False, False
    if token == "—" and language == "es":
        return raya(at)
    if token == "…" and left in marks.QUOTES and at.follows_opening:
        return False, False
    if token == "−" and right[:1].isdecimal():
        return (True, False) if not left[-1:].isdecimal() else (None, None)
    kinds = {marks.kind_of(character) for character in token}
    if kinds == {"opening"}:
        return not at.follows_opening, False
    if kinds <= {"closing", "mark"}:
        spaced = language == "fr" and kinds == {"closing"} and token in FRENCH_SPACED
        return spaced, None
    if language == "ko" and left in marks.CLOSING and not at.joined and KOREAN_PARTICLE.match(token):
        return False, None
    return None, None


def ascii_spaces(token: str, at: marks.Context) -> marks.Spaces:
    """Return the spaces around ASCII marks that Moses does not know, and around words after a quotation mark."""
    left, right = at.left, at.right
    match token:
        case "'":
            quoted = "'" in at.rest
            return marks.straight_apostrophe(left, right, at.single, quoted, at.language)
        case "_":
            return False, False
        case "/":
            return slash(at)
        case ":" if at.rest[:2] == ["/", "/"]:
            return False, False
        case ":" if at.language in ("fi", "sv") and left.isupper() and right.islower():
            return False, False
        case "@" if marks.word_like(right[:1]):
            is_mail = marks.word_like(left[-1:]) and "." in right.strip(".")
            return (False if is_mail else None), False
        case "#" if marks.word_like(right[:1]):
            return (False, None) if len(left) == 1 and left.isupper() else (None, False)
        case "#" if left in ("C", "F"):
            return False, None
        case "%" if right in PRINTF and not left[-1:].isdecimal():
            return True if marks.word_like(left[-1:]) else None, False
        case "&" if right in ENTITIES and at.rest[1:2] == [";"]:
            return None, False
        case "(" if right == ")" and marks.word_like(left[-1:]):
            return False, False
        case "+" if right == "+" and marks.word_like(left[-1:]):
            return False, False
        case "+" if left == "+" and at.joined:
            return False, None
        case "$":
            return currency(at)
    if token[0] == "-" and len(token) > 1 and left in marks.CLOSING and not at.joined:
        return False, None
    return None, None


def shortened(at: marks.Context) -> marks.Spaces | None:
    """Return the spaces around the apostrophe of a word that lacks letters (`give ’em`, `rock ’n’ roll`), else None."""
    if at.language == "en" and at.right.lower() == "n" and at.token(2) == "’":
        return True, False
    if at.language == "en" and at.left.lower() == "n" and at.token(-2) == "’":
        return False, True
    return (
        (True, False)
        if at.right.lower() in marks.SHORTENED.get(at.language, ()) and marks.word_like(at.left[-1:])
        else None
    )


def raya(at: marks.Context) -> marks.Spaces:
    """Return the spaces around a Spanish dash, which joins what it sets off, as in `—Hola —dijo él—`."""
    if not at.place:
        return None, False
    is_second = at.tokens[max(1, at.place - marks.AHEAD) : at.place].count("—") % 2 == 1
    return (False, None if at.right[:1] in NO_SPACE_BEFORE else True) if is_second else (True, False)


def slash(at: marks.Context) -> marks.Spaces:
    """Return the spaces around `/`, which joins words and is part of addresses."""
    if at.left in (":", "/") and at.joined:
        return False, False
    if at.right == "/" and at.left == ":":
        return False, False
    joined = marks.word_like(at.left[-1:]) and marks.word_like(at.right[:1])
    return (False, False) if joined else (None, None)


def quotation(token: str, at: marks.Context) -> marks.Spaces:
    """Return the spaces around a quotation mark, which opens or closes according to `at.opened`."""
    spaced = at.language in SPACED_GUILLEMETS and token in "«»‹›"
    opened = at.opened
    if opened and token in marks.QUOTES[opened[-1]] and not (token == "„" and opened[-1] == "„" and "“" in at.rest):
        opened.pop()
        return spaced, None
    if token == "‘" and is_letter(at):
        return (False, False) if at.language == "uz" else (None, False)
    if token in marks.CLOSING and not opens(token, at):
        return spaced, None
    opened.append(token)
    return None, spaced


def is_letter(at: marks.Context) -> bool:
    """Return whether `‘` is no quotation mark: in Uzbek, or for an apostrophe, as in `‘90s`."""
    if at.language == "uz":
        return at.left[-1:].lower() in ("o", "g")
    return at.language == "en" and (at.right[:1].isdecimal() or at.right.lower() in marks.LEADING)


def opens(token: str, at: marks.Context) -> bool:
    """Return whether a mark that usually closes a quotation opens one here: `”so”`, `»so«`, `“so“`."""
    if token in "“„‘":
        return True
    if token == "’" or (token in "»›" and at.language not in REVERSED_GUILLEMETS):
        return False
    second = marks.QUOTES.get(token, "")
    following = next((mark for mark in at.rest if mark == token or mark in second), None)
    return following is not None and following in second


def currency(at: marks.Context) -> marks.Spaces:
    """Return the spaces around a currency sign, which belongs to the number beside it."""
    has_sign = bool(at.token(-2)) and marks.kind_of(at.token(-2)[-1]) == "currency"
    is_prefix = has_sign or at.token(0) in PREFIXES or not at.left[-1:].isdecimal()
    if is_prefix and at.right[:1].isdecimal():
        return True if has_sign else None, False
    return True, None if at.right[:1] in NO_SPACE_BEFORE else True


PREFIXES = frozenset("$£₹¥₩₪₱฿₦")
"""Currency signs that stand before a number."""
NO_SPACE_BEFORE = frozenset(["", *",.;:!?)]}%'\"/-…"])

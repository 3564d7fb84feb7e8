"""Punctuation that decides the spaces around tokens: quotation marks, brackets and apostrophes."""

import unicodedata
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

Spaces = tuple[bool | None, bool | None]
"""Flags: a space stands before and after a token; None = as Moses has it."""
QUOTES = {"„": "“”„", "“": "”", "”": "”", "«": "»", "»": "«»", "‚": "‘’", "‘": "’", "‹": "›", "›": "‹", "「": "」"}
"""Opening quotation marks with their closing ones."""
CLOSING = frozenset("".join(QUOTES.values()))
LEFT = frozenset("™®ºª°\u200e\u200f")
"""Symbols without a space before them, in addition to final punctuation."""
NOT_FINAL = frozenset("§¶†‡•※‖¿¡@#&/*\\\"'")
"""Punctuation of Unicode's class Po that does not end a phrase."""


def word_like(character: str) -> bool:
    """Return whether a character, possibly empty, is a letter, a digit or a combining mark."""
    return bool(character) and unicodedata.category(character)[0] in "LNM"


def is_opening(token: str) -> bool:
    """Return whether no space follows a token, e.g. a bracket."""
    return bool(token) and (token in "([{/" or kind_of(token[-1]) == "opening")


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


AHEAD = 300
"""Number of tokens beside a mark in which its counterpart is looked for."""


@dataclass(frozen=True)
class Context:
    """Characters and marks around a token.

    Attributes:
        tokens: All tokens of the line.
        place: Index of the token.
        language: Language without script and region, such as `pt` of the tag `pt-BR`.
        opened: Stack of open quotation marks; rules change it.
        joined: By the rule of the token before it, no space stands before this one.
        single: The line has one `'`, so that it quotes nothing.
    """

    tokens: list[str]
    place: int
    language: str
    opened: list[str]
    joined: bool
    single: bool

    def token(self, offset: int) -> str:
        """Return the token at an offset from this one, or an empty text."""
        place = self.place + offset
        return self.tokens[place] if 0 <= place < len(self.tokens) else ""

    @property
    def left(self) -> str:
        """Return the token before this one, or an empty text."""
        return self.token(-1)

    @property
    def right(self) -> str:
        """Return the token after this one, or an empty text."""
        return self.token(1)

    @property
    def rest(self) -> list[str]:
        """Return the next tokens."""
        return self.tokens[self.place + 1 : self.place + 1 + AHEAD]

    @property
    def follows_opening(self) -> bool:
        """Return whether the token before is an opening bracket or quotation mark."""
        is_either = self.left in QUOTES or self.left in CLOSING or self.left == "—"
        return self.joined if is_either else is_opening(self.left)

    @property
    def may_close(self) -> bool:
        """Return whether a quotation is open that `’` closes, and no later mark closes it rather."""
        return bool(self.opened) and "’" in QUOTES[self.opened[-1]] and not self.closes_later(QUOTES[self.opened[-1]])

    def closes_later(self, marks: str) -> bool:
        """Return whether one of some marks follows before a space, and no quotation begins until then."""
        following = self.rest
        for mark, right in zip_longest(following, following[1:], fillvalue=""):
            if mark in marks and not word_like(right[:1]):
                return True
            if mark in "‘‚":
                return False
        return False


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
SHORTENED = {
    "en": frozenset({"tis", "twas", "em", "til", "cos"}),
    "nl": frozenset({"t"}),
    "af": frozenset({"n"}),
}
"""Words that a typographic apostrophe begins, also after a word: `give ’em`, `in ’t huis`."""
LEADING = frozenset({"tis", "twas", "til", "em", "cause", "cos", "n", "round", "bout"})
"""English words whose first letter an apostrophe replaces."""
LONGEST_ENCLITIC = 3
"""Maximum number of letters of a word that follows an apostrophe, as in `geht's`."""

OPENING = frozenset("“«‹„")
"""Quotation marks that follow an elision: `l’“amico”`."""


def apostrophe(left: str, right: str, language: str, quoted: bool) -> Spaces | None:
    """Return the spaces around `’` between tokens `left` and `right`, either may be empty; None for a quotation mark.

    `language` lacks script and region, as `pt` of `pt-BR`; `quoted`: a quotation is open that `’` closes.
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
    """Return the spaces around `'`, which Moses takes for a quotation mark except with elision; see `apostrophe`.

    `single`: the only one in the line, so it quotes nothing; `quoted`: another one follows.
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
        clitic = language == "de" and right.rstrip(".").lower() in GERMAN_CLITICS
        return (False, not clitic) if single or clitic else (None, None)
    return (False, False) if len(right) <= (1 if quoted else LONGEST_ENCLITIC) else (None, None)


def plain_letter(character: str) -> str:
    """Return a letter without accents, in lower case."""
    return unicodedata.normalize("NFD", character)[0].lower()

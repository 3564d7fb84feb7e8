"""Roles of tokens that decide the spaces around them, and what stands around a token."""

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
"""Symbols without a space before them, beside final punctuation."""
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
"""Number of following tokens in which the counterpart of a mark is looked for."""


@dataclass(frozen=True)
class Context:
    """Characters and marks around a token.

    Attributes:
        tokens: All tokens of the line.
        place: Index of the token.
        language: ISO 639 code.
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
        is_quote = self.left in QUOTES or self.left in CLOSING
        return self.joined if is_quote else is_opening(self.left)

    @property
    def may_close(self) -> bool:
        """Return whether a quotation is open that `’` closes, and no later mark closes it rather."""
        return bool(self.opened) and "’" in QUOTES[self.opened[-1]] and not self.closes_later(QUOTES[self.opened[-1]])

    def closes_later(self, marks: str) -> bool:
        """Return whether one of some marks follows before a space, and no quotation begins until then."""
        following = self.rest
        for one, right in zip_longest(following, following[1:], fillvalue=""):
            if one in marks and not word_like(right[:1]):
                return True
            if one in "‘‚":
                return False
        return False

"""Moses' rules of detokenising (detokenizer.perl), with the results of sacremoses.

Importing sacremoses takes 0.25 s in each process, because its tokenizer compiles 200 regular expressions.
"""

from functools import lru_cache

import regex

LETTER = regex.compile(r"[\p{Alphabetic}--[\p{Ideographic}\uAC00-\uD7AF\U00010000-\U0010FFFF]]", regex.V1)
OPENING = regex.compile(r"[(\[{¿¡[\p{Sc}--[\u07FE\u07FF\u20BE-\u20C0\U00010000-\U0010FFFF]]]+", regex.V1)
"""Opening brackets and the currency signs that Moses knows."""
CLOSING = regex.compile(r"[,.?!:;\\%})\]]+")
FRENCH_SPACED = frozenset("?!:;\\%")
QUOTES = regex.compile("['\"„“`]+")
ELIDING = frozenset({"fr", "it", "ga"})
"""Languages in which Moses joins a word that ends in an apostrophe to the next one."""
CJK = (
    (0x1100, 0x11FF),
    (0x2E80, 0xA4CF),
    (0xA840, 0xA87F),
    (0xAC00, 0xD7AF),
    (0xF900, 0xFAFF),
    (0xFE30, 0xFE4F),
    (0xFF65, 0xFFDC),
    (0x17000, 0x18AFF),
    (0x1B000, 0x1B12F),
    (0x1B170, 0x1B2FF),
    (0x20000, 0x2FFFF),
)
"""Ranges of characters that Moses joins, unless the language is Korean."""


def join_tokens(tokens: list[str], language: str) -> str:
    """Join tokens with spaces where Moses sets them.

    Args:
        tokens: Tokens of a line.
        language: ISO 639 code.

    Returns:
        The text of the line.
    """
    words = f" {' '.join(tokens)} ".replace(" @-@ ", "-").split()
    joined, space = list[str](), " "
    quotes: dict[str, int] = {}
    for place, word in enumerate(words):
        before, after = space, " "
        match kind_of(word, language):
            case "cjk" if place and is_cjk(words[place - 1][-1]):
                before = ""
            case "opening":
                after = ""
            case "closing":
                before = " " if language == "fr" and word in FRENCH_SPACED else ""
            case "contraction" if place:
                before = ""
            case "elision" if place + 1 < len(words) and LETTER.match(words[place + 1]):
                after = ""
            case "quote":
                before, after = quotation(word, words[place - 1] if place else "", language, space, quotes)
        joined += (before, word)
        space = after
    return "".join(joined).strip()


def quotation(word: str, left: str, language: str, space: str, quotes: dict[str, int]) -> tuple[str, str]:
    """Return what stands before and after quotation marks, which open and close in turn.

    Args:
        word: The marks.
        left: The word before them, or empty.
        language: ISO 639 code.
        space: What stands before a word here.
        quotes: Number of each mark until here, which is updated.
    """
    mark = word if word.strip("„“") else '"'
    number = quotes.get(mark, 0)
    if number % 2 == 0 and language == "en" and word == "'" and left.endswith("s"):
        return "", " "  # a possessive
    quotes[mark] = number + 1
    return ("", " ") if number % 2 else (space, "")


@lru_cache(1 << 16)
def kind_of(word: str, language: str) -> str:
    """Return the role of a word in spacing.

    Args:
        word: The word.
        language: ISO 639 code.
    """
    if language != "ko" and is_cjk(word[0]):
        return "cjk"
    if OPENING.fullmatch(word):
        return "opening"
    if CLOSING.fullmatch(word):
        return "closing"
    if language == "en" and word[0] == "'" and LETTER.match(word[1:2]):
        return "contraction"
    if language in ELIDING and word[-1] == "'" and LETTER.match(word[-2:-1]):
        return "elision"
    return "quote" if QUOTES.fullmatch(word) else "word"


def is_cjk(character: str) -> bool:
    """Return whether Moses takes a character for Chinese, Japanese or Korean."""
    return character >= "\u1100" and any(first <= ord(character) <= last for first, last in CJK)

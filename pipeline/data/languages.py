"""Language codes, and languages whose script has no spaces between words."""

from functools import cache
from typing import Literal

from langcodes import Language, standardize_tag, tag_is_valid

BleuTokenizer = Literal["13a", "zh", "char"]
UNNAMED = "xx"
"""Code of a language that has none, such as a made-up one."""
UNSPACED = frozenset(
    {"Hani", "Hans", "Hant", "Jpan", "Hira", "Kana", "Hrkt", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"}
    | {"Talu", "Lana", "Tale", "Tavt", "Bali", "Java"}
)
"""Scripts (ISO 15924) without spaces between words."""
HAN = frozenset({"Hani", "Hans", "Hant"})


@cache
def canonical(code: str) -> str:
    """Return the shortest ISO 639 code of a language: `zh` for `zho`, `chi` and `cmn`, `en` for `eng`.

    Args:
        code: Two or three lowercase letters, or `UNNAMED`.

    Raises:
        ValueError: ISO 639 has no such code.
    """
    if code == UNNAMED:
        return code
    if not (code.isascii() and code.isalpha() and code.islower() and 2 <= len(code) <= 3 and tag_is_valid(code)):
        raise ValueError(f"{code!r} is not an ISO 639 code; write e.g. en, de or zh ({UNNAMED} if it has none)")
    found = standardize_tag(code, macro=True).partition("-")[0]
    return found if len(found) <= len(code) else code


@cache
def script_of(code: str) -> str | None:
    """Return the usual script of a language (ISO 15924); None if it is unknown."""
    return Language.get(code).maximize().script


def is_unspaced(code: str) -> bool:
    """Return whether the language is usually written without spaces between words."""
    return script_of(code) in UNSPACED


def is_chinese(code: str) -> bool:
    """Return whether the language is written in Chinese characters alone, as Mandarin and Cantonese are."""
    return script_of(code) in HAN


def bleu_tokenizer(code: str) -> BleuTokenizer:
    """Return sacreBLEU's tokenizer for a language, which splits text without spaces into characters."""
    if is_chinese(code):
        return "zh"
    return "char" if is_unspaced(code) else "13a"

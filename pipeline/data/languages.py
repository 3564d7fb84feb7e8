"""Language tags, and languages whose script has no spaces between words."""

from functools import cache
from typing import Literal

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
    """Return the standard tag of a language: `zh` for `zho`, `chi` and `cmn`, `zh-TW` for `zh_tw`.

    Raises:
        ValueError: There is no such language, script or region, or the tag has an extension.
    """
    if code.lower() == UNNAMED:
        return UNNAMED
    if not is_tag(code):
        raise ValueError(
            f"{code!r} is not an ISO 639 code or BCP 47 tag; write e.g. en, zh or pt-BR ({UNNAMED} if it has none)"
        )
    from langcodes import standardize_tag

    return standardize_tag(code, macro=True)


def is_tag(code: str) -> bool:
    """Return whether a code names a language, and nothing but script, region and variants of it."""
    from langcodes import Language, tag_is_valid  # takes 70 ms

    try:
        found = Language.get(code, normalize=False)
        return tag_is_valid(code) and not (found.extlangs or found.extensions or found.private)
    except ValueError:
        return False


def base_language(tag: str) -> str:
    """Return the ISO 639 code of a tag: `pt` of `pt-BR`."""
    return tag.partition("-")[0]


@cache
def script_of(code: str) -> str | None:
    """Return the script of a tag, by default the usual one of its language (ISO 15924); None if unknown."""
    from langcodes import Language

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

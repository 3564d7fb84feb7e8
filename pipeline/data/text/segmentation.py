"""Segmentation of text without spaces into words or characters, and lengths that compare across scripts."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from jieba import Tokenizer

    from pipeline.data.dataset import Segmenter

SCRIPTS = {
    2: ("Han", "Hiragana", "Katakana"),
    4: (
        *("Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "New_Tai_Lue"),
        *("Tai_Tham", "Tai_Le", "Tai_Viet", "Balinese", "Javanese"),
    ),
}
"""Scripts without spaces between words, by approximate letters and marks per word."""


def any_of(scripts: tuple[str, ...]) -> str:
    """Return a pattern, for `regex.V1`, of letters and marks of Unicode scripts without punctuation and digits."""
    return "[{}--[\\p{{P}}\\p{{N}}]]".format("".join(f"\\p{{Script={script}}}" for script in scripts))


ALL = any_of(tuple(script for scripts in SCRIPTS.values() for script in scripts))
UNSPACED = regex.compile(ALL, regex.V1)
# A letter of a script without spaces, a run of letters and digits of another script, or another mark.
CHARACTER = regex.compile(rf"{ALL}|[[\p{{L}}\p{{M}}\p{{N}}]--{ALL}]+|\S", regex.V1)
LETTERS = regex.compile(r"\p{L}")
WORDS = {letters: regex.compile(any_of(scripts), regex.V1) for letters, scripts in SCRIPTS.items()}
SPACED_WORD = regex.compile(rf"[[\p{{L}}\p{{M}}\p{{N}}]--{ALL}]+|[\p{{P}}\p{{S}}]", regex.V1)

LONG_RUN = re.compile(r"[\u4e00-\u9fd5]{500}")
"""Run of ideographs too long for a sentence; jieba takes quadratic time for it."""


def segment(line: str, segmenter: "Segmenter") -> str:
    """Return the words of a `line`, separated by single spaces; only white space is lost.

    The `segmenter` is `jieba`, a dictionary of Chinese with a hidden Markov model for unknown words, or `characters`.
    """
    words: Iterable[str]
    match segmenter:
        case "jieba":
            words = (word for part in parts(line) for word in dictionary().cut(part))
        case "characters":
            words = CHARACTER.findall(line)
    return " ".join(word for word in words if word.strip())


def length(line: str) -> int:
    """Count words and punctuation marks; scripts without spaces have a fixed number of letters per word (`SCRIPTS`)."""
    unspaced = sum(-(-len(pattern.findall(line)) // letters) for letters, pattern in WORDS.items())
    return unspaced + len(SPACED_WORD.findall(line))


def lacks_spaces(lines: list[str]) -> bool:
    """Return whether most letters of the lines belong to scripts without spaces between words."""
    text = "".join(lines)
    return 2 * len(UNSPACED.findall(text)) > len(LETTERS.findall(text)) > 0


def parts(line: str) -> Iterator[str]:
    """Yield the line cut after every 500 ideographs in a row; usually the whole line."""
    start = 0
    for run in LONG_RUN.finditer(line):
        yield line[start : run.end()]
        start = run.end()
    yield line[start:]


@cache
def dictionary() -> "Tokenizer":
    """Load jieba from the dictionary of its package; by default it reads a cache in a world-writable folder."""
    from jieba import Tokenizer

    tokenizer = Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer

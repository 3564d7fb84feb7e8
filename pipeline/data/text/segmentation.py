"""Where a Chinese word ends, which its writing does not say."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

from jieba import Tokenizer

# One ideograph, or one run of letters and digits of another script, or one other mark.
CHARACTER = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W_\u3400-\u9fff\uf900-\ufaff]+|\S")

LONG_RUN = re.compile(r"[\u4e00-\u9fd5]{500}")
"""So many ideographs without any mark are no sentence. jieba takes quadratic time for them."""


def segment(line: str, segmenter: str) -> str:
    """The words of a line, separated by single spaces; nothing but white space is lost.

    segmenter: `jieba`, a dictionary with a hidden Markov model for words that it lacks, or `characters`.
    """
    words: Iterable[str]
    match segmenter:
        case "jieba":
            words = (word for part in parts(line) for word in dictionary().cut(part))
        case "characters":
            words = CHARACTER.findall(line)
        case _:
            raise ValueError(f"segmenter must be jieba or characters, got {segmenter!r}")
    return " ".join(word for word in words if word.strip())


def parts(line: str) -> Iterator[str]:
    """Yield the line cut after every 500 ideographs in a row: as a rule, whole."""
    start = 0
    for run in LONG_RUN.finditer(line):
        yield line[start : run.end()]
        start = run.end()
    yield line[start:]


@cache
def dictionary() -> Tokenizer:
    """jieba, its dictionary read from the package: by itself it would load a cache from a folder that all may write."""
    tokenizer = Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer

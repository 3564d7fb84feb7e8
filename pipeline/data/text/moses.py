"""Moses tokenisation by sacremoses, and its inverse.

Nothing is escaped (`&` stays `&`), dashes are not split, and punctuation is not rewritten, so that text is lost in
white space only. Words are separated by single spaces.

The detokeniser of Moses knows ASCII. Spaces around other marks are decided by `spacing`.
"""

from functools import cache
from typing import TYPE_CHECKING

from pipeline.data.text.spacing import respaced

if TYPE_CHECKING:
    from sacremoses import MosesDetokenizer, MosesTokenizer


@cache
def tokenizer(language: str) -> "MosesTokenizer":
    from sacremoses import MosesTokenizer  # a quarter of a second, only for those who split or join words

    return MosesTokenizer(lang=language)


@cache
def detokenizer(language: str) -> "MosesDetokenizer":
    from sacremoses import MosesDetokenizer

    return MosesDetokenizer(lang=language)


def tokenise(line: str, language: str) -> str:
    """Return the tokens of a line, separated by single spaces."""
    return " ".join(tokenizer(language).tokenize(line, escape=False))  # a string may end in a space, after `.'`


def detokenise(line: str, language: str) -> str:
    """Return a line of tokens as people write it."""
    tokens = line.split(" ")
    return respaced(tokens, detokenizer(language).detokenize(tokens, return_str=True, unescape=False), language)

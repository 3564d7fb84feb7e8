"""Moses tokenisation and its inverse, by sacremoses.

Nothing is escaped (`&` stays `&`), dashes are not split, and punctuation is not rewritten, so that text is lost in
white space only. Words are separated by single spaces.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sacremoses import MosesDetokenizer, MosesTokenizer


@cache
def tokenizer(language: str) -> "MosesTokenizer":
    from sacremoses import MosesTokenizer  # a quarter of a second, for those alone who have words to join or part

    return MosesTokenizer(lang=language)


@cache
def detokenizer(language: str) -> "MosesDetokenizer":
    from sacremoses import MosesDetokenizer

    return MosesDetokenizer(lang=language)


def tokenise(line: str, language: str) -> str:
    return " ".join(tokenizer(language).tokenize(line, escape=False))  # a string may end in a space, after `.'`


def detokenise(line: str, language: str) -> str:
    return detokenizer(language).detokenize(line.split(" "), return_str=True, unescape=False)

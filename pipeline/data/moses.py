"""Moses tokenisation and its inverse, by sacremoses.

Nothing is escaped (`&` stays `&`), dashes are not split, and punctuation is not rewritten, so that text is lost in
white space only. Words are separated by single spaces.
"""

from functools import cache

from sacremoses import MosesDetokenizer, MosesTokenizer


@cache
def tokenizer(language: str) -> MosesTokenizer:
    return MosesTokenizer(lang=language)


@cache
def detokenizer(language: str) -> MosesDetokenizer:
    return MosesDetokenizer(lang=language)


def tokenise(line: str, language: str) -> str:
    return " ".join(tokenizer(language).tokenize(line, escape=False))  # a string may end in a space, after `.'`


def detokenise(line: str, language: str) -> str:
    return detokenizer(language).detokenize(line.split(" "), return_str=True, unescape=False)

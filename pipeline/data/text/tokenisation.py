"""Turn text into the tokens that subwords are learnt from, and back.

`moses` splits words and punctuation as papers do; its inverse is a set of rules, so some text does not come back as it
was. `none` keeps the text: sentencepiece learns subwords of it and keeps every space, so that nothing is lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import regex

from pipeline.data.dataset import CorpusRecord, Segmenter, TokeniserName
from pipeline.data.languages import bleu_tokenizer, is_unspaced
from pipeline.data.text.segmentation import length, segment
from pipeline.data.text.spacing import respaced

VISIBLE = regex.compile(r"[^\p{C}\p{Z}]")


@dataclass(frozen=True)
class Tokenisation:
    """How a dataset's text becomes tokens."""

    tokeniser: TokeniserName = "moses"
    segmenter: Segmenter | None = None
    lowercase: bool = False

    @classmethod
    def of(cls, dataset: CorpusRecord) -> "Tokenisation":
        """Return the tokenisation of a dataset."""
        return cls(dataset.tokeniser, dataset.segmenter, dataset.lowercase)

    def tokens(self, text: str, language: str) -> str:
        """Return what the model reads of a line: tokens separated by spaces, empty if none is left."""
        if self.tokeniser == "none":
            tokens = text if VISIBLE.search(text) else ""
        elif self.segmenter and language == "zh":
            tokens = segment(text, self.segmenter)
        else:
            tokens = tokenise(text, language)
        return tokens.lower() if self.lowercase else tokens

    def text(self, tokens: str, language: str) -> str:
        """Return a line of tokens as people write it."""
        return tokens if self.tokeniser == "none" else detokenise(tokens, language)

    def words(self, tokens: str) -> int:
        """Count the words of a line of tokens; see `unit`."""
        return length(tokens) if self.tokeniser == "none" else tokens.count(" ") + 1

    @property
    def unit(self) -> str:
        """Name what `words` counts."""
        if self.tokeniser == "none":
            return "words and marks; without spaces 2 letters (Han, kana) or 4 (Thai, Lao, Khmer, Burmese, …) a word"
        return "tokens"

    def scored(self, text: str, tokens: str, language: str) -> str:
        """Return the tokens of a line that metrics of tokenised text compare."""
        if self.tokeniser == "moses":
            return tokens
        found = segment(text, "characters") if is_unspaced(language) else tokenise(text, language)
        return found.lower() if self.lowercase else found

    def scored_as(self, language: str) -> str:
        """Name, for signatures, what made the tokens that `scored` returns."""
        if self.tokeniser == "none":
            return "characters" if is_unspaced(language) else "moses"
        return self.segmenter if self.segmenter and language == "zh" else "moses"


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


LOSSLESS = 99.0


class RoundTrip(NamedTuple):
    """Lines that were tokenised and detokenised, compared with what they were."""

    ceiling: float
    """sacreBLEU of what came back."""
    changed: list[int]
    """Numbers of the lines that differ, from 1."""

    @property
    def is_lossy(self) -> bool:
        """Whether the loss is worth a warning; lines without four words score 0 in any case."""
        return bool(self.changed) and self.ceiling < LOSSLESS


def round_trip(how: Tokenisation, language: str, text: Sequence[str], tokens: Sequence[str]) -> RoundTrip:
    """Detokenise the tokens of some lines and score them against the lines.

    Args:
        how: What made the tokens.
        language: ISO 639 code.
        text: Lines as written; at least one.
        tokens: The same lines as tokens.
    """
    from sacrebleu import corpus_bleu  # half a second, for those who score

    returned = [how.text(line, language) for line in tokens]
    found = corpus_bleu(
        returned, [list(text)], tokenize=bleu_tokenizer(language), lowercase=how.lowercase, force=True
    ).score
    pairs = zip(text, returned, strict=True)
    fold = str.lower if how.lowercase else str
    return RoundTrip(round(found, 4), [number for number, (one, two) in enumerate(pairs, 1) if fold(one) != fold(two)])

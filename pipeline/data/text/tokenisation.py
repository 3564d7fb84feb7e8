"""Tokenisation of text for subword models, its inverse, and the loss of a round trip.

`moses` splits words and punctuation as papers do. Its inverse is a set of rules, so some text changes in a round trip.
`none` keeps the text: sentencepiece learns subwords with their spaces, so nothing is lost.

Moses runs by sacremoses without escaping (`&` stays `&`), without splitting dashes and without rewriting punctuation,
so only white space and ASCII control characters are lost. Tokens are those of Moses' `tokenizer.perl` of 2016, as the
papers used it. Since November 2018 that program also splits the last stop of a line from a word that may be an
abbreviation or ordinal number (`the U.S.`, German `Nr. 5.`). The detokeniser of Moses knows ASCII; `spacing` decides
spaces around other marks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import regex

from pipeline.data.dataset import CorpusRecord, Segmenter, TokeniserName
from pipeline.data.languages import base_language, bleu_tokenizer, is_unspaced
from pipeline.data.text.segmentation import length, segment
from pipeline.data.text.spacing import correct_spaces

VISIBLE = regex.compile(r"[^\p{C}\p{Z}]")


def visible_text(line: str) -> str:
    """Return a line without white space around it; empty if no character is visible."""
    return line.strip() if VISIBLE.search(line) else ""


@dataclass(frozen=True)
class Tokenisation:
    """Mapping between a dataset's text and its tokens."""

    tokeniser: TokeniserName = "moses"
    segmenter: Segmenter | None = None
    lowercase: bool = False

    @classmethod
    def of(cls, dataset: CorpusRecord) -> "Tokenisation":
        """Return the tokenisation of a dataset."""
        return cls(dataset.tokeniser, dataset.segmenter, dataset.lowercase)

    def tokens(self, text: str, language: str) -> str:
        """Return the tokens of cleaned `text` in a `language`, separated by spaces; empty if nothing is visible."""
        if not VISIBLE.search(text):
            tokens = ""
        elif self.tokeniser == "none":
            tokens = text
        elif self.segmenter and base_language(language) == "zh":
            tokens = segment(text, self.segmenter)
        else:
            tokens = tokenise(text, language)
        return tokens.lower() if self.lowercase else tokens

    def text(self, tokens: str, language: str) -> str:
        """Return the text of a line of `tokens`, separated by spaces, in a `language`."""
        return tokens if self.tokeniser == "none" else detokenise(tokens, language)

    def words(self, tokens: str) -> int:
        """Count the words of a line of tokens, in units of `unit`."""
        return length(tokens) if self.tokeniser == "none" else tokens.count(" ") + 1

    @property
    def unit(self) -> str:
        """Unit of `words`."""
        if self.tokeniser == "none":
            return "words and marks; without spaces 2 letters (Han, kana) or 4 (Thai, Lao, Khmer, Burmese, …) a word"
        return "tokens"

    def scored(self, text: str, tokens: str, language: str) -> str:
        """Return the tokens that metrics of tokens compare, of a line of `text` and `tokens` in a `language`."""
        if self.tokeniser == "moses":
            return tokens
        found = segment(text, "characters") if is_unspaced(language) else tokenise(text, language)
        return found.lower() if self.lowercase else found

    def scored_as(self, language: str) -> str:
        """Return the name, for signatures, of the tokeniser behind `scored`."""
        if self.tokeniser == "none":
            return "characters" if is_unspaced(language) else "moses"
        return self.segmenter if self.segmenter and base_language(language) == "zh" else "moses"


if TYPE_CHECKING:
    from sacremoses import MosesDetokenizer, MosesTokenizer


@cache
def tokenizer(language: str) -> "MosesTokenizer":
    """Return the Moses tokenizer of a language."""
    from sacremoses import MosesTokenizer  # takes 0.25 s

    found = MosesTokenizer(lang=base_language(language))
    # sacremoses makes these sets for each word that ends in a stop, a third of its time.
    letters, small_letters = frozenset(found.IsAlpha), frozenset(found.IsLower)
    found.isanyalpha = lambda text: not letters.isdisjoint(text)
    found.islower = small_letters.issuperset
    return found


@cache
def detokenizer(language: str) -> "MosesDetokenizer":
    """Return the Moses detokenizer of a language."""
    from sacremoses import MosesDetokenizer

    # sacremoses' rules for Czech join numbers to words and raise TypeError.
    language = base_language(language)
    return MosesDetokenizer(lang="en" if language == "cs" else language)


def tokenise(line: str, language: str) -> str:
    """Return the tokens of a `line` of text in a `language`, separated by single spaces."""
    # Joined here, because sacremoses' own string may end in a space, after `.'`.
    return " ".join(tokenizer(language).tokenize(line, escape=False))


def detokenise(line: str, language: str) -> str:
    """Return the text of a `line` of tokens, separated by spaces, in a `language`."""
    tokens = [token for token in line.split(" ") if token]
    if not tokens:
        return ""
    marks = tokens
    if base_language(language) == "en" and tokens[0][0:1] == "'" and tokens[0] != "'" and "'" in tokens:
        marks = ["'", tokens[0][1:], *tokens[1:]]  # the tokenizer leaves a mark at the beginning of a line
    text = detokenizer(language).detokenize(marks, return_str=True, unescape=False)
    return correct_spaces(tokens, text, language)


LOSSLESS = 99.0


class RoundTrip(NamedTuple):
    """Loss of tokenising and detokenising some lines."""

    ceiling: float
    """sacreBLEU of the lines after a round trip, the score of a perfect translation."""
    changed: list[int]
    """Numbers of the lines that differ, from 1."""

    @property
    def is_lossy(self) -> bool:
        """True if the loss deserves a warning; lines without four words score 0 in any case."""
        return bool(self.changed) and self.ceiling < LOSSLESS


def round_trip(how: Tokenisation, language: str, text: Sequence[str], tokens: Sequence[str]) -> RoundTrip:
    """Detokenise tokens and score them against the original lines.

    Args:
        how: Tokenisation that made the tokens.
        language: Tag of the language.
        text: Original lines; at least one.
        tokens: The same lines as tokens.

    Returns:
        The score after the round trip, and the lines that it changes.
    """
    from sacrebleu import corpus_bleu  # takes 0.5 s

    returned = [how.text(line, language) for line in tokens]
    found = corpus_bleu(
        returned, [list(text)], tokenize=bleu_tokenizer(language), lowercase=how.lowercase, force=True
    ).score
    pairs = zip(text, returned, strict=True)
    fold = str.lower if how.lowercase else str
    return RoundTrip(
        round(found, 4), [number for number, (before, after) in enumerate(pairs, 1) if fold(before) != fold(after)]
    )

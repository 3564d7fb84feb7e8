"""Turn text into the tokens that subwords are learnt from, and back.

`moses` splits words and punctuation as papers do; its inverse is a set of rules, so some text does not come back as it
was. `none` keeps the text: sentencepiece learns subwords of it and keeps every space, so that nothing is lost.
"""

from dataclasses import dataclass

import regex

from pipeline.data.dataset import CorpusRecord, Segmenter, TokeniserName
from pipeline.data.languages import is_unspaced
from pipeline.data.text.moses import detokenise, tokenise
from pipeline.data.text.segmentation import length, segment

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

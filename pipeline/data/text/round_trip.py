"""Measure what tokenising and detokenising loses: the score that a perfect translation reaches."""

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.data.languages import bleu_tokenizer
from pipeline.data.text.tokenisation import Tokenisation

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

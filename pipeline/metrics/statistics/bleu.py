"""BLEU (Papineni et al. 2002) in several recipes, from statistics kept for every sentence.

The counting is sacreBLEU's. Its statistics per sentence, (N, 10) integers

    hypothesis length, reference length, matching 1…4-grams, hypothesis 1…4-grams

are all that a score, its interval and a paired test need: they are kept beside the score.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from pipeline.data.languages import BleuTokenizer
from pipeline.metrics.statistics.metric import Metric
from pipeline.metrics.statistics.texts import Translations

Smoothing = Literal["none", "exp"]
MAX_ORDER = 4


@dataclass(frozen=True)
class Recipe:
    """What is done to the text, and how it is counted."""

    text: Literal["tokenised", "raw"]
    """What the lines are: `tokenised` as the training data, by which the signature says, or `raw`."""
    tokenizer: BleuTokenizer | Literal["none"] = "none"
    lowercase: bool = False
    compound_split: bool = False
    reference_length: Literal["closest", "shortest"] = "closest"
    whole_unknown: bool = False
    """Whether the symbol of unknown words counts as one word: a tokenizer would make three of `<unk>`."""


MTEVAL = Recipe("raw", "13a", lowercase=True, whole_unknown=True)
"""Detokenised, tokenised as by NIST's `mteval`, case-insensitive; closest reference's length (v12 and later)."""


def bleu_by(
    name: str,
    recipe: Callable[[Translations], Recipe],
    smoothing: Smoothing = "none",
    applies: Callable[[Translations], bool] = lambda texts: True,
) -> Metric[Translations]:
    """A BLEU by the recipe that is its own for a test set."""

    def counter(texts: Translations) -> Any:
        from pipeline.metrics.statistics.ngrams import SentenceBLEU  # with sacreBLEU

        return SentenceBLEU(recipe(texts), smoothing)

    return Metric(
        name,
        Translations,
        statistics=lambda texts: counter(texts).statistics(texts),
        total=partial(bleu, smoothing=smoothing),
        signature=lambda texts: counter(texts).signature(texts),
        applies=applies,
    )


def bleu(totals: np.ndarray, smoothing: Smoothing = "none") -> np.ndarray:
    """BLEU in percent of summed statistics (…, 10), many corpora (resamples) at once.

        BLEU = min(1, exp(1 - r / c)) * (p_1 p_2 p_3 p_4)^(1/4)        p_n = matching / all n-grams

    With smoothing `exp` (sacreBLEU's default) the i-th order without a match counts as 2^-i matches.
    """
    totals = np.asarray(totals, dtype=np.float64)
    lengths, reference_lengths = totals[..., 0], totals[..., 1]
    matches, possible = totals[..., 2 : 2 + MAX_ORDER], totals[..., 2 + MAX_ORDER :]
    if smoothing == "exp":
        unmatched = matches == 0
        matches = np.where(unmatched, 0.5 ** np.cumsum(unmatched, axis=-1), matches)
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = np.where(possible > 0, matches / possible, 0)
        brevity = np.minimum(0, 1 - np.where(lengths > 0, reference_lengths / lengths, np.inf))
        score = 100 * np.exp(brevity + np.log(precisions).mean(axis=-1))
    return np.where(totals[..., 2 : 2 + MAX_ORDER].any(axis=-1), score, 0.0)

"""BLEU (Papineni et al. 2002) in several recipes, and GLEU, from statistics kept for every sentence.

sacreBLEU counts. Its statistics per sentence are (N, 10) integers

    hypothesis length, reference length, matching 1…4-grams, hypothesis 1…4-grams

A score, its interval and a paired test need nothing else, so they are stored beside the score.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from pipeline.data.languages import BleuTokenizer, bleu_tokenizer
from pipeline.metrics.metric import Metric, Translations

Smoothing = Literal["none", "exp"]
MAX_ORDER = 4


@dataclass(frozen=True)
class Recipe:
    """Preparation and counting of text."""

    text: Literal["tokenised", "raw"]
    """Lines as the training data is tokenised, or raw lines."""
    tokenizer: BleuTokenizer | Literal["none"] = "none"
    lowercase: bool = False
    compound_split: bool = False
    reference_length: Literal["closest", "shortest"] = "closest"
    whole_unknown: bool = False
    """Counts the symbol of unknown words as one word; a tokenizer would split `<unk>` into three."""


MTEVAL = Recipe("raw", "13a", lowercase=True, whole_unknown=True)
"""Raw text, tokenised as by NIST's `mteval`, case-insensitive, with the closest reference's length (v12 and later)."""


def paper_recipe(texts: Translations) -> Recipe:
    """Return the recipe by which the paper of a dataset counted.

    Tokenised text counted as by `multi-bleu.perl`; WMT en-de with compounds split (tensor2tensor's
    `get_ende_bleu.sh`); NIST sets as by `mteval-v11b`, with the shortest reference's length.
    """
    if texts.nist:
        return replace(MTEVAL, reference_length="shortest")
    return Recipe("tokenised", lowercase=texts.case == "lc", compound_split=texts.compound_split)


def sacrebleu_recipe(texts: Translations) -> Recipe:
    """Return sacreBLEU's default recipe (Post 2018): raw text against the raw reference.

    Case is ignored if the corpus is lower-cased.
    """
    return Recipe("raw", bleu_tokenizer(texts.tgt), lowercase=texts.case == "lc")


def bleu_metric(
    name: str,
    recipe: Callable[[Translations], Recipe],
    smoothing: Smoothing = "none",
    applies: Callable[[Translations], bool] = lambda texts: True,
) -> Metric[Translations]:
    """Build a BLEU metric whose recipe depends on the test set."""

    def counter(texts: Translations) -> Any:
        from pipeline.metrics.sacrebleu_counts import SentenceBLEU  # loads sacreBLEU

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
    """Return BLEU in percent for many corpora (resamples) at once.

        BLEU = min(1, exp(1 - r / c)) * (p_1 p_2 p_3 p_4)^(1/4)        p_n = matching / all n-grams

    Args:
        totals: Summed statistics, shape (…, 10).
        smoothing: `exp` (sacreBLEU's default) counts the i-th order without a match as 2^-i matches.
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


def gleu_statistics(bleu_statistics: np.ndarray) -> np.ndarray:
    """Derive the statistics of GLEU from those of BLEU with one reference.

    Args:
        bleu_statistics: Shape (N, 10).

    Returns:
        Shape (N, 2): matching 1…4-grams, and 1…4-grams of the longer side.
    """
    matches = bleu_statistics[:, 2 : 2 + MAX_ORDER].sum(axis=1)
    in_hypothesis = bleu_statistics[:, 2 + MAX_ORDER :].sum(axis=1)
    in_reference = np.maximum(bleu_statistics[:, 1:2] - np.arange(MAX_ORDER), 0).sum(axis=1)
    return np.stack([matches, np.maximum(in_hypothesis, in_reference)], axis=1).astype(np.int32)


BLEU_PAPER = bleu_metric("bleu_paper", paper_recipe)
BLEU_TOK = bleu_metric("bleu_tok", lambda texts: Recipe("tokenised", lowercase=texts.case == "lc"))
"""Tokenised text in the corpus's case, counted as by `multi-bleu.perl`."""
BLEU_TOK_LC = bleu_metric("bleu_tok_lc", lambda texts: Recipe("tokenised", lowercase=True))
"""The same lower-cased; the `-lc` of `multi-bleu.perl` itself lower-cases ASCII letters only."""
BLEU_CLOSEST = bleu_metric("bleu_closest", lambda texts: MTEVAL, applies=lambda texts: texts.nist)
"""NIST sets as `mteval` counts from version 12 on: with the closest reference's length."""
SACREBLEU = bleu_metric("sacrebleu", sacrebleu_recipe, smoothing="exp")
GLEU = Metric(
    "gleu",
    Translations,
    statistics=lambda texts: gleu_statistics(BLEU_TOK.statistics(texts)),
    total=lambda totals: 100 * totals[..., 0] / np.maximum(totals[..., 1], 1),
    signature=lambda texts: f"text:{texts.tokeniser}|case:{texts.case}|ngrams:1-4|corpus:sums",
    applies=lambda texts: len(texts.tokenised.references) == 1,
)
"""Smaller of n-gram precision and recall (Wu et al. 2016, section 5)."""
METRICS = (BLEU_PAPER, BLEU_TOK, BLEU_TOK_LC, BLEU_CLOSEST, SACREBLEU, GLEU)

"""N-gram metrics: BLEU (Papineni et al. 2002) in several recipes, GLEU and chrF, from statistics of every sentence.

sacreBLEU counts, and is imported only where it does. The statistics of BLEU are (N, 10) integers

    hypothesis length, reference length, matching 1…4-grams, hypothesis 1…4-grams

A score, its interval and a paired test need nothing else, so they are stored beside the score. The score chrF is the
F-score of character n-grams of raw text, with more weight on recall (Popović 2015):

    chrF = (1 + beta²) P R / (beta² P + R)      P, R: mean precision and recall of 1…6-grams without spaces, beta = 2

The mean is over the orders of which both sides have n-grams, as in every version of sacreBLEU.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from pipeline.data.languages import BleuTokenizer, bleu_tokenizer
from pipeline.metrics.metric import Metric, Translations, percentage

Smoothing = Literal["none", "exp"]
MAX_ORDER = 4
"""Longest n-grams of BLEU and GLEU."""
BETA = 2
"""Weight of recall in chrF."""
ONE_WORD = "OOV"
"""Stands for the symbol of unknown words, as in Table 3 of the Multi-channel Encoder."""
HYPHEN = re.compile(rb"(\S)-(\S)")
"""Rule of the script, which reads bytes and each once: it splits `10-€-Schein` twice, but `a-b-c` once."""


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

    Tokenised text is counted as by `multi-bleu.perl`; WMT en-de with compounds split (tensor2tensor's
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
    """Return the BLEU metric `name` of statistics (N, 10), whose recipe depends on the test set."""
    return Metric(
        name,
        Translations,
        statistics=lambda texts: bleu_statistics(texts, recipe(texts)),
        total=partial(bleu, smoothing=smoothing),
        signature=lambda texts: bleu_signature(texts, recipe(texts), smoothing),
        applies=applies,
    )


def bleu_counter(recipe: Recipe, smoothing: Smoothing = "none") -> Any:
    """Return sacreBLEU's BLEU counter, a `sacrebleu.metrics.BLEU`."""
    from sacrebleu.metrics.bleu import BLEU

    counter: Any = BLEU(lowercase=recipe.lowercase, tokenize=recipe.tokenizer, smooth_method=smoothing, force=True)
    if recipe.reference_length == "shortest":  # mteval-v11b
        counter._get_closest_ref_len = lambda hypothesis_length, reference_lengths: min(reference_lengths)
    return counter


def bleu_statistics(texts: Translations, recipe: Recipe) -> np.ndarray:
    """Return int32 statistics (N, 10) of N hypotheses against one or more lists of references."""
    if recipe not in texts.counted:
        texts.counted[recipe] = count_ngrams(texts, recipe)
    return texts.counted[recipe]


def count_ngrams(texts: Translations, recipe: Recipe) -> np.ndarray:
    """Count the statistics that `bleu_statistics` returns."""
    lines = texts.raw if recipe.text == "raw" else texts.tokenised
    hypotheses, references = lines.hypotheses, lines.references
    if recipe.compound_split:
        hypotheses = [split_compounds(line) for line in hypotheses]
        references = [[split_compounds(line) for line in lines] for lines in references]
    if recipe.whole_unknown:
        from pipeline.data.text.vocabulary import UNKNOWN_WORD  # loads sentencepiece

        hypotheses = [line.replace(UNKNOWN_WORD, ONE_WORD) for line in hypotheses]
    rows = bleu_counter(recipe)._extract_corpus_statistics(hypotheses, references)
    return np.array(rows, dtype=np.int32).reshape(-1, 2 + 2 * MAX_ORDER)


def bleu_signature(texts: Translations, recipe: Recipe, smoothing: Smoothing) -> str:
    """Return how the score is counted: our own fields, then sacreBLEU's signature."""
    counter = bleu_counter(recipe, smoothing)
    counter.num_refs = len(texts.raw.references)
    own = [f"text:{'raw' if recipe.text == 'raw' else texts.tokeniser}"]
    if recipe.compound_split:
        own.append("compounds:split")
    if recipe.reference_length != "closest":
        own.append(f"reflen:{recipe.reference_length}")
    if recipe.whole_unknown:
        own.append("unknown:one-word")
    return "|".join([*own, counter.get_signature().format()])


def split_compounds(line: str) -> str:
    """Make each hyphen between two non-spaces a token, as tensor2tensor's `get_ende_bleu.sh` does."""
    return HYPHEN.sub(rb"\1 ##AT##-##AT## \2", line.encode()).decode()


def bleu(totals: np.ndarray, smoothing: Smoothing = "none") -> np.ndarray:
    """Compute BLEU of many corpora (resamples) at once (Papineni et al. 2002).

        BLEU = min(1, exp(1 - r / c)) * (p_1 p_2 p_3 p_4)^(1/4)        p_n = matching / all n-grams

    Args:
        totals: Summed statistics, shape (…, 10).
        smoothing: `exp` (sacreBLEU's default) counts the i-th order without a match as 2^-i matches.

    Returns:
        BLEU in percent, shape (…,).
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
    """Return matching 1…4-grams and those of the longer side, (N, 2), from `bleu_statistics` (N, 10)."""
    matches = bleu_statistics[:, 2 : 2 + MAX_ORDER].sum(axis=1)
    in_hypothesis = bleu_statistics[:, 2 + MAX_ORDER :].sum(axis=1)
    in_reference = np.maximum(bleu_statistics[:, 1:2] - np.arange(MAX_ORDER), 0).sum(axis=1)
    return np.stack([matches, np.maximum(in_hypothesis, in_reference)], axis=1).astype(np.int32)


def chrf_counter(texts: Translations) -> Any:
    """Build sacreBLEU's chrF counter, which ignores case if the corpus is lower-cased."""
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(beta=BETA, lowercase=texts.case == "lc")


def chrf_statistics(texts: Translations) -> np.ndarray:
    """Return int32 counts (N, 18) of n-grams of hypothesis, best reference and both, for each order."""
    rows = chrf_counter(texts)._extract_corpus_statistics(texts.raw.hypotheses, texts.raw.references)
    return np.array(rows, dtype=np.int32)


def chrf(totals: np.ndarray) -> np.ndarray:
    """Compute chrF in percent, shape (…,), from the summed statistics `totals` (…, 18)."""
    ngrams = np.asarray(totals, dtype=np.float64).reshape(*np.shape(totals)[:-1], -1, 3)
    found, wanted, both = ngrams[..., 0], ngrams[..., 1], ngrams[..., 2]
    counted = (found > 0) & (wanted > 0)
    orders = np.maximum(counted.sum(axis=-1), 1)
    precision, recall = (percentage(both, side * counted).sum(axis=-1) / orders for side in (found, wanted))
    return (1 + BETA**2) / 100 * percentage(precision * recall, BETA**2 * precision + recall)


def chrf_signature(texts: Translations) -> str:
    """Return how the score is counted: our own fields, then sacreBLEU's signature."""
    theirs = chrf_counter(texts)
    theirs.num_refs = len(texts.raw.references)
    return f"text:raw|beta:{BETA}|{theirs.get_signature().format()}"


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
CHRF = Metric("chrf", Translations, chrf_statistics, chrf, chrf_signature)
METRICS = (BLEU_PAPER, BLEU_TOK, BLEU_TOK_LC, BLEU_CLOSEST, SACREBLEU, GLEU, CHRF)

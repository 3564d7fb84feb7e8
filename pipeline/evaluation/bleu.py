"""BLEU (Papineni et al. 2002) in named recipes, from statistics kept for every sentence.

The counting is sacreBLEU's. Its statistics per sentence, (N, 10) integers

    hypothesis length, reference length, matching 1…4-grams, hypothesis 1…4-grams

are all that a score, its interval and a paired test need: they are kept beside the score.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from pipeline.data.vocabulary import UNKNOWN_WORD

Smoothing = Literal["none", "exp"]
ReferenceLength = Literal["closest", "shortest"]
MAX_ORDER = 4
ONE_WORD = "OOV"
"""For the symbol of unknown words, as Table 3 of the Multi-channel Encoder prints it."""
HYPHEN = re.compile(r"(\S)-(\S)", re.ASCII)


@dataclass(frozen=True)
class Recipe:
    """What is done to the text, and how it is counted. The first field is the name in every score file."""

    name: str
    text: str
    """What the lines are, in the signature: `moses` (tokenised as the training data), `raw`."""
    tokenizer: Literal["none", "13a", "zh"] = "none"
    smoothing: Smoothing = "none"
    lowercase: bool = False
    compound_split: bool = False
    reference_length: ReferenceLength = "closest"
    whole_unknown: bool = False
    """Whether the symbol of unknown words counts as one word: a tokenizer would make three of `<unk>`."""


def recipes(
    compound_split: bool = False, nist: bool = False, tokenizer: Literal["13a", "zh"] = "13a"
) -> tuple[Recipe, ...]:
    """The BLEUs given for every score. The arguments but the last are the paper's own recipe for this test set.

    bleu_paper: what the paper did: tokenised, as `multi-bleu.perl` counts; for WMT en-de with compounds split
        (`get_ende_bleu.sh` of tensor2tensor); for NIST sets detokenised, tokenised as by `mteval`, case-insensitive,
        with the shortest reference's length (`mteval-v11b`).
    bleu_closest: for NIST sets, the same with the closest reference's length (`mteval-v12` and later).
    bleu_tok: tokenised, case-sensitive, as `multi-bleu.perl` counts.
    bleu_tok_lc: the same, lower-cased.
    sacrebleu: detokenised text against the raw reference, tokenised by sacreBLEU.
    """
    if nist:
        mteval = Recipe("bleu_closest", "raw", "13a", lowercase=True, whole_unknown=True)
        own = replace(mteval, name="bleu_paper", reference_length="shortest"), mteval
    else:
        own = (Recipe("bleu_paper", "moses", compound_split=compound_split),)
    return (
        *own,
        Recipe("bleu_tok", "moses"),
        Recipe("bleu_tok_lc", "moses", lowercase=True),
        Recipe("sacrebleu", "raw", tokenizer, "exp"),
    )


def split_compounds(line: str) -> str:
    """Each hyphen between two non-spaces becomes a token of its own, as tensor2tensor's `get_ende_bleu.sh` has it."""
    return HYPHEN.sub(r"\1 ##AT##-##AT## \2", line)


class SentenceBLEU(BLEU):
    """sacreBLEU's counting, giving the statistics of each sentence in place of one score."""

    def __init__(self, recipe: Recipe):
        super().__init__(
            lowercase=recipe.lowercase, tokenize=recipe.tokenizer, smooth_method=recipe.smoothing, force=True
        )
        self.recipe = recipe

    def statistics(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> np.ndarray:
        """(N, 10) int32, of N hypotheses against one or more lists of N references."""
        if self.recipe.compound_split:
            hypotheses = [split_compounds(line) for line in hypotheses]
            references = [[split_compounds(line) for line in lines] for lines in references]
        if self.recipe.whole_unknown:
            hypotheses = [line.replace(UNKNOWN_WORD, ONE_WORD) for line in hypotheses]
        rows = self._extract_corpus_statistics(hypotheses, references)
        return np.array(rows, dtype=np.int32).reshape(-1, 2 + 2 * MAX_ORDER)

    def _get_closest_ref_len(self, hyp_len: int, ref_lens: list[int]) -> int:
        if self.recipe.reference_length == "shortest":  # mteval-v11b
            return min(ref_lens)
        return super()._get_closest_ref_len(hyp_len, ref_lens)

    def signature(self) -> str:
        """How the score was made; call after `statistics`. sacreBLEU's own signature is its last part."""
        own = [f"text:{self.recipe.text}"]
        if self.recipe.compound_split:
            own.append("compounds:split")
        if self.recipe.reference_length != "closest":
            own.append(f"reflen:{self.recipe.reference_length}")
        if self.recipe.whole_unknown:
            own.append("unknown:one-word")
        return "|".join([*own, self.get_signature().format()])


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

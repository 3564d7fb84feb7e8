"""BLEU as the paper counted it, by the dataset file.

Tokenised, as `multi-bleu.perl` counts; for WMT en-de with compounds split (`get_ende_bleu.sh` of tensor2tensor); for
NIST sets detokenised, tokenised as by `mteval`, case-insensitive, with the shortest reference's length (`mteval-v11b`).
"""

from dataclasses import replace

from pipeline.metrics.statistics.bleu import MTEVAL, Recipe, bleu_by
from pipeline.metrics.statistics.texts import Translations


def recipe(texts: Translations) -> Recipe:
    if texts.nist:
        return replace(MTEVAL, reference_length="shortest")
    return Recipe("tokenised", lowercase=texts.case == "lc", compound_split=texts.compound_split)


METRIC = bleu_by("bleu_paper", recipe)

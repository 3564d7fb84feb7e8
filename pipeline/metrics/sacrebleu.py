"""BLEU of detokenised text against the raw reference, tokenised by sacreBLEU (Post 2018)."""

from pipeline.metrics.statistics.bleu import Recipe, bleu_by
from pipeline.metrics.statistics.texts import Translations


def recipe(texts: Translations) -> Recipe:
    return Recipe("raw", "zh" if texts.tgt == "zh" else "13a")


METRIC = bleu_by("sacrebleu", recipe, smoothing="exp")

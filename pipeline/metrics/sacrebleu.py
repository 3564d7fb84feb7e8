"""BLEU of detokenised text against the raw reference, tokenised by sacreBLEU (Post 2018)."""

from pipeline.data.languages import bleu_tokenizer
from pipeline.metrics.statistics.bleu import Recipe, bleu_by
from pipeline.metrics.statistics.texts import Translations


def recipe(texts: Translations) -> Recipe:
    """Return sacreBLEU's recipe; a corpus without capitals is compared without them."""
    return Recipe("raw", bleu_tokenizer(texts.tgt), lowercase=texts.case == "lc")


METRIC = bleu_by("sacrebleu", recipe, smoothing="exp")

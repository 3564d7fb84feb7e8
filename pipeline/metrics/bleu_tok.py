"""BLEU of tokenised text, its case as the corpus has it, as `multi-bleu.perl` counts."""

from pipeline.metrics.statistics.bleu import Recipe, bleu_by

METRIC = bleu_by("bleu_tok", lambda texts: Recipe("tokenised", lowercase=texts.case == "lc"))

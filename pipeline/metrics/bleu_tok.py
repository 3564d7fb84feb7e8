"""BLEU of tokenised text, case-sensitive, as `multi-bleu.perl` counts."""

from pipeline.metrics.statistics.bleu import Recipe, bleu_by

METRIC = bleu_by("bleu_tok", lambda texts: Recipe("moses"))

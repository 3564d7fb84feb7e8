"""BLEU of tokenised, lower-cased text, as `multi-bleu.perl` counts; its own `-lc` knows no letters but ASCII."""

from pipeline.metrics.statistics.bleu import Recipe, bleu_by

METRIC = bleu_by("bleu_tok_lc", lambda texts: Recipe("tokenised", lowercase=True))

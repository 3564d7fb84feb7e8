"""BLEU of tokenised, lower-cased text, as `multi-bleu.perl -lc` counts."""

from pipeline.metrics.statistics.bleu import Recipe, bleu_by

METRIC = bleu_by("bleu_tok_lc", lambda texts: Recipe("moses", lowercase=True))

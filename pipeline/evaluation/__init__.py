"""From text to numbers: BLEU in three recipes, perplexity, intervals and paired tests."""

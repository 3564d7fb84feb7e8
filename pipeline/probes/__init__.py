"""Running trained models, or their layers, to look into them: attention, alignments, gates, perplexity, times."""

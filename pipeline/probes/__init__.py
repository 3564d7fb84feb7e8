"""Measurements inside trained models and layers: attention, alignments, gates, perplexity, sizes and times."""

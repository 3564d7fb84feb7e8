"""Word error rate."""

from pipeline.metrics.statistics.edits import error_rate

METRIC = error_rate("wer", units="words", split=str.split)

"""Character error rate."""

from pipeline.metrics.statistics.edits import error_rate

METRIC = error_rate("cer", units="characters, spaces among them", split=str)

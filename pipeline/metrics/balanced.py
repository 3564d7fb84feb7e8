"""Share of outputs whose brackets match as written."""

from pipeline.metrics.statistics.brackets import parse_rate

METRIC = parse_rate("balanced", lambda repairs: repairs.balanced, "outputs-with-matching-brackets")

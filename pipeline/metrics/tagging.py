"""Share of words, punctuation aside, with the right part-of-speech tag."""

from pipeline.metrics.statistics.brackets import Parses
from pipeline.metrics.statistics.metric import Metric
from pipeline.metrics.statistics.rates import rate

SIGNATURE = "part-of-speech-tags|punctuation:deleted-by-gold-tags"
METRIC = Metric("tagging", Parses, lambda parses: parses.counts[:, 3:], rate, lambda parses: SIGNATURE)

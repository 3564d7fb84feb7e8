"""Labelled bracketing F1 of all sentences."""

from pipeline.metrics.statistics.brackets import EVALB, Parses, f1
from pipeline.metrics.statistics.metric import Metric

METRIC = Metric("f1", Parses, lambda parses: parses.counts[:, :3], f1, lambda parses: f"{EVALB}|words:all")

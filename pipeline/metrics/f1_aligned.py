"""Labelled bracketing F1 of all sentences, words set on the tags that the model wrote by alignment, not in order."""

from pipeline.metrics.statistics.brackets import EVALB, Parses, counted, f1
from pipeline.metrics.statistics.metric import Metric

SIGNATURE = f"{EVALB}|words:all|tags:aligned"
METRIC = Metric("f1_aligned", Parses, lambda one: counted(one.gold, one.aligned)[:, :3], f1, lambda _: SIGNATURE)

"""Labelled bracketing F1 of the sentences of at most 40 words, punctuation among them."""

import numpy as np

from pipeline.metrics.statistics.brackets import EVALB, Parses, f1
from pipeline.metrics.statistics.metric import Metric

CUT_OFF = 40


def statistics(parses: Parses) -> np.ndarray:
    """(N, 3) matched, gold and parsed brackets; zero for a longer sentence."""
    return parses.counts[:, :3] * (parses.lengths <= CUT_OFF)[:, None]


METRIC = Metric("f1_40", Parses, statistics, f1, lambda parses: f"{EVALB}|words:{CUT_OFF}-at-most")

"""Share of sentences whose brackets are all right, and no more than right."""

import numpy as np

from pipeline.metrics.statistics.brackets import EVALB, Parses, parse_rate


def exact(parses: Parses) -> np.ndarray:
    matched, right, found = parses.counts[:, :3].T
    return (matched == right) & (matched == found)


METRIC = parse_rate("exact", exact, f"{EVALB}|all-brackets-right|words:all")

"""Perplexity per symbol: exp of the mean cross-entropy without smoothing."""

from dataclasses import dataclass

import numpy as np

from pipeline.metrics.statistics.metric import Inputs, Metric


@dataclass(frozen=True)
class LogLikelihoods(Inputs):
    """How likely a model finds the references of a split, sentence by sentence, without dropout."""

    folder = "perplexities"
    forms = ("sentences", "trees", "speech", "characters")
    rows: np.ndarray
    """(sentences, 2) nats and symbols of the target side, EOS counted, padding not."""
    unit: str
    """What a symbol is: subword, character."""
    vocabulary: int
    """Symbols that there are."""


def perplexity(totals: np.ndarray) -> np.ndarray:
    """Of summed nats and symbols (…, 2); infinite when it is too large for a number."""
    with np.errstate(over="ignore"):
        return np.exp(totals[..., 0] / totals[..., 1])


METRIC = Metric(
    "perplexity",
    LogLikelihoods,
    statistics=lambda likelihoods: likelihoods.rows,
    total=perplexity,
    signature=lambda found: f"unit:{found.unit}|vocab:{found.vocabulary}|eos:yes|smoothing:none",
    better="lower",
    judged_as=np.log,
)

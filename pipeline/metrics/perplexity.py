"""Perplexity per symbol: exp of the mean cross-entropy without smoothing."""

from dataclasses import dataclass

import numpy as np

from pipeline.metrics.metric import Metric, MetricInputs


@dataclass(frozen=True)
class LogLikelihoods(MetricInputs):
    """Log-likelihoods that a model gives to the references of a split, sentence by sentence, without dropout."""

    folder = "perplexities"
    forms = ("sentences", "trees", "speech", "characters")
    rows: np.ndarray
    """Shape (sentences, 2): negative log-likelihood in nats, and target symbols; EOS counts, padding does not."""
    unit: str
    """Name of a symbol: subword, character."""
    vocabulary: int
    """Number of symbols in the vocabulary."""


def perplexity(totals: np.ndarray) -> np.ndarray:
    """Compute perplexity from summed statistics.

    Args:
        totals: Summed nats and target symbols, shape (…, 2).

    Returns:
        Shape (…,); infinite if it overflows.
    """
    with np.errstate(over="ignore"):
        return np.exp(totals[..., 0] / totals[..., 1])


PERPLEXITY = Metric(
    "perplexity",
    LogLikelihoods,
    statistics=lambda likelihoods: likelihoods.rows,
    total=perplexity,
    signature=lambda found: f"unit:{found.unit}|vocab:{found.vocabulary}|eos:yes|smoothing:none",
    better="lower",
    comparison_scale=np.log,
)
METRICS = (PERPLEXITY,)

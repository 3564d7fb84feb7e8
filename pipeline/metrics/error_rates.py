"""Word and character error rate, and perplexity per symbol.

The error rate is edits over the length of the reference, in percent, of all sentences together. An edit replaces,
inserts or deletes one unit. rapidfuzz counts the fewest that turn the reference into the hypothesis. Text is compared
in the alphabet of transcripts: lower case, apostrophes kept; spaces are characters. Perplexity is exp of the mean
cross-entropy without smoothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from pipeline.metrics.metric import Metric, MetricInputs


@dataclass(frozen=True)
class Transcripts(MetricInputs):
    """Reference transcripts and hypotheses, utterance by utterance."""

    folder = "scores"
    forms = ("speech",)
    references: list[str]
    hypotheses: list[str]


def error_rate(name: str, units: str, split: Callable[[str], Sequence[str]]) -> Metric[Transcripts]:
    """Build an error rate.

    Args:
        name: Name of the metric.
        units: Name of the units in the signature.
        split: Splits a line into units.

    Returns:
        Metric with statistics (N, 2): edits, and units of the reference.
    """

    def statistics(transcripts: Transcripts) -> np.ndarray:
        """Count edits and units of the reference, shape (N, 2)."""
        from rapidfuzz.distance import Levenshtein

        pairs = zip(map(split, transcripts.references), map(split, transcripts.hypotheses), strict=True)
        counts = [(Levenshtein.distance(reference, hypothesis), len(reference)) for reference, hypothesis in pairs]
        return np.array(counts, dtype=np.int64)

    return Metric(
        name,
        Transcripts,
        statistics,
        total=lambda totals: 100 * totals[..., 0] / totals[..., 1],
        signature=lambda _: f"{name}|units:{units}|case:lower|apostrophe:kept|edits:rapidfuzz-{version('rapidfuzz')}",
        better="lower",
    )


def domain_gap(target_wer: float, source_trained_wer: float, target_trained_wer: float) -> float:
    """Return the domain gap (Cold Fusion, section 4.4).

    It is 0 if the WER is as low as that of the model trained on the target domain. It is 100 if the WER is as high as
    that of the model trained on the source domain.

    Args:
        target_wer: Word error rate of the model on the target domain, in percent.
        source_trained_wer: The same of the attention model trained on the source domain.
        target_trained_wer: The same of the attention model trained on the target domain.

    Returns:
        Gap in percent.
    """
    return 100 * (target_wer - target_trained_wer) / (source_trained_wer - target_trained_wer)


CER = error_rate("cer", units="characters, spaces among them", split=str)
WER = error_rate("wer", units="words", split=str.split)


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
    """Compute perplexity (…,) from `totals` (…, 2), nats and target symbols; infinite if it overflows."""
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
METRICS = (CER, WER, PERPLEXITY)

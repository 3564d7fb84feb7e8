"""Edits over the length of the reference, in percent, of all sentences together.

An edit replaces, inserts or removes one unit; the fewest that turn the reference into the hypothesis count (counted by
rapidfuzz). Text is compared as it is written in the alphabet of transcripts: lower case, apostrophes kept; spaces are
characters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from pipeline.metrics.statistics.metric import Inputs, Metric


@dataclass(frozen=True)
class Transcripts(Inputs):
    """What was said and what was written down, utterance by utterance."""

    folder = "scores"
    forms = ("speech",)
    references: list[str]
    hypotheses: list[str]


def error_rate(name: str, units: str, split: Callable[[str], Sequence[str]]) -> Metric[Transcripts]:
    """The metric that counts what `split` makes of a line; units: their name in the signature."""

    def statistics(transcripts: Transcripts) -> np.ndarray:
        """(N, 2) edits and units of the reference."""
        from rapidfuzz.distance import Levenshtein

        pairs = zip(map(split, transcripts.references), map(split, transcripts.hypotheses), strict=True)
        return np.array([(Levenshtein.distance(said, heard), len(said)) for said, heard in pairs], dtype=np.int64)

    return Metric(
        name,
        Transcripts,
        statistics,
        total=lambda totals: 100 * totals[..., 0] / totals[..., 1],
        signature=lambda _: f"{name}|units:{units}|case:lower|apostrophe:kept|edits:rapidfuzz-{version('rapidfuzz')}",
        better="lower",
    )


def domain_gap(target_wer: float, source_trained_wer: float, target_trained_wer: float) -> float:
    """Percent of the way from the target-trained to the source-trained attention model (Cold Fusion, section 4.4)."""
    return 100 * (target_wer - target_trained_wer) / (source_trained_wer - target_trained_wer)

"""Character and word error rate: edits over the length of the reference, in percent, of all sentences together.

An edit replaces, inserts or removes one unit; the fewest that turn the reference into the hypothesis count (counted by
rapidfuzz). Text is compared as it is written in the alphabet of transcripts: lower case, apostrophes kept; spaces are
characters.
"""

from importlib.metadata import version

import numpy as np
from rapidfuzz.distance import Levenshtein

UNITS = {"cer": "characters, spaces among them", "wer": "words"}


def error_statistics(references: list[str], hypotheses: list[str]) -> dict[str, np.ndarray]:
    """{cer, wer}: (N, 2) edits and units of the reference of each sentence."""
    cer = [(Levenshtein.distance(ours, theirs), len(ours)) for ours, theirs in zip(references, hypotheses, strict=True)]
    words = [(ours.split(), theirs.split()) for ours, theirs in zip(references, hypotheses, strict=True)]
    wer = [(Levenshtein.distance(ours, theirs), len(ours)) for ours, theirs in words]
    return {"cer": np.array(cer, dtype=np.int64), "wer": np.array(wer, dtype=np.int64)}


def error_rate(totals: np.ndarray) -> np.ndarray:
    """Percent, of summed statistics (…, 2)."""
    return 100 * totals[..., 0] / totals[..., 1]


def domain_gap(target_wer: float, source_trained_wer: float, target_trained_wer: float) -> float:
    """Percent of the way from the target-trained to the source-trained attention model (Cold Fusion, section 5.3)."""
    return 100 * (target_wer - target_trained_wer) / (source_trained_wer - target_trained_wer)


def signature(name: str) -> str:
    return f"{name}|units:{UNITS[name]}|case:lower|apostrophe:kept|edits:rapidfuzz-{version('rapidfuzz')}"

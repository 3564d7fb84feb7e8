"""GLEU, the smaller of n-gram precision and recall (Wu et al. 2016, section 5), each sentence by its n-grams."""

import numpy as np

from pipeline.metrics.bleu_tok import METRIC as BLEU_TOK
from pipeline.metrics.statistics.bleu import MAX_ORDER
from pipeline.metrics.statistics.metric import Metric
from pipeline.metrics.statistics.texts import Translations


def gleu_statistics(bleu_statistics: np.ndarray) -> np.ndarray:
    """(N, 2): matching 1…4-grams, and those of the longer side, from BLEU statistics (N, 10) of one reference."""
    matches = bleu_statistics[:, 2 : 2 + MAX_ORDER].sum(axis=1)
    in_hypothesis = bleu_statistics[:, 2 + MAX_ORDER :].sum(axis=1)
    in_reference = np.maximum(bleu_statistics[:, 1:2] - np.arange(MAX_ORDER), 0).sum(axis=1)
    return np.stack([matches, np.maximum(in_hypothesis, in_reference)], axis=1).astype(np.int32)


METRIC = Metric(
    "gleu",
    Translations,
    statistics=lambda texts: gleu_statistics(BLEU_TOK.statistics(texts)),
    total=lambda totals: 100 * totals[..., 0] / np.maximum(totals[..., 1], 1),
    signature=lambda texts: f"text:{texts.tokeniser}|case:{texts.case}|ngrams:1-4|corpus:sums",
    applies=lambda texts: len(texts.tokenised.references) == 1,
)

"""chrF: F-score of character n-grams of raw text with more weight on recall (Popović 2015), counted by sacreBLEU.

    chrF = (1 + beta²) P R / (beta² P + R)      P, R: mean precision and recall of 1…6-grams without spaces, beta = 2

The mean is over the orders of which both sides have n-grams, as in every version of sacreBLEU.
"""

from typing import Any

import numpy as np

from pipeline.metrics.metric import Metric, Translations, percentage

BETA = 2


def counter(texts: Translations) -> Any:
    """Build sacreBLEU's chrF counter, which ignores case if the corpus is lower-cased."""
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(beta=BETA, lowercase=texts.case == "lc")


def statistics(texts: Translations) -> np.ndarray:
    """Count n-grams of hypothesis, reference and both, for each order.

    Returns:
        Shape (N, 18); of several references, the counts of the best one.
    """
    rows = counter(texts)._extract_corpus_statistics(texts.raw.hypotheses, texts.raw.references)
    return np.array(rows, dtype=np.int32)


def chrf(totals: np.ndarray) -> np.ndarray:
    """Return chrF in percent, given summed statistics (…, 18)."""
    ngrams = np.asarray(totals, dtype=np.float64).reshape(*np.shape(totals)[:-1], -1, 3)
    found, wanted, both = ngrams[..., 0], ngrams[..., 1], ngrams[..., 2]
    counted = (found > 0) & (wanted > 0)
    orders = np.maximum(counted.sum(axis=-1), 1)
    precision, recall = (percentage(both, side * counted).sum(axis=-1) / orders for side in (found, wanted))
    return (1 + BETA**2) / 100 * percentage(precision * recall, BETA**2 * precision + recall)


def signature(texts: Translations) -> str:
    """Describe how the score is counted; ends with sacreBLEU's own signature."""
    theirs = counter(texts)
    theirs.num_refs = len(texts.raw.references)
    return f"text:raw|beta:{BETA}|{theirs.get_signature().format()}"


CHRF = Metric("chrf", Translations, statistics, chrf, signature)
METRICS = (CHRF,)

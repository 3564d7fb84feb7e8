"""chrF: F-score of character n-grams, recall weighing more (Popović 2015), of detokenised text by sacreBLEU's counts.

    chrF = (1 + beta²) P R / (beta² P + R)      P, R: mean precision and recall of 1…6-grams without spaces, beta = 2

The mean is of those orders that both sides have n-grams of, as sacreBLEU has it since its first version.
"""

from typing import Any

import numpy as np

from pipeline.metrics.statistics.metric import Metric
from pipeline.metrics.statistics.rates import per_cent
from pipeline.metrics.statistics.texts import Translations

BETA = 2


def counter(texts: Translations) -> Any:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(beta=BETA, lowercase=texts.case == "lc")


def statistics(texts: Translations) -> np.ndarray:
    """(N, 18) n-grams of hypothesis, reference and both, of each order; of several references the best one's."""
    rows = counter(texts)._extract_corpus_statistics(texts.raw.hypotheses, texts.raw.references)
    return np.array(rows, dtype=np.int32)


def chrf(totals: np.ndarray) -> np.ndarray:
    """Percent, of summed statistics (…, 18)."""
    ngrams = np.asarray(totals, dtype=np.float64).reshape(*np.shape(totals)[:-1], -1, 3)
    found, wanted, both = ngrams[..., 0], ngrams[..., 1], ngrams[..., 2]
    counted = (found > 0) & (wanted > 0)
    orders = np.maximum(counted.sum(axis=-1), 1)
    precision, recall = (per_cent(both, side * counted).sum(axis=-1) / orders for side in (found, wanted))
    return (1 + BETA**2) / 100 * per_cent(precision * recall, BETA**2 * precision + recall)


def signature(texts: Translations) -> str:
    theirs = counter(texts)
    theirs.num_refs = len(texts.raw.references)
    return f"text:raw|beta:{BETA}|{theirs.get_signature().format()}"


METRIC = Metric("chrf", Translations, statistics, chrf, signature)

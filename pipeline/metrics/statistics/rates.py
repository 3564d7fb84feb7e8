"""Shares and means of summed statistics."""

import numpy as np


def per_cent(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Zero where the whole is."""
    return 100 * np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) != 0)


def rate(totals: np.ndarray) -> np.ndarray:
    """Percent, of (…, 2) summed successes and trials."""
    return per_cent(totals[..., 0], totals[..., 1])


def mean(totals: np.ndarray) -> np.ndarray:
    """Of a summed quantity and its count (…, 2); not a number where there is none."""
    with np.errstate(invalid="ignore"):
        return totals[..., 0] / totals[..., 1]

"""Student's t by scipy, which is loaded when something is judged: every dry run imports what judges."""

import numpy as np


def tail(value: float, freedom: float) -> float:
    """P(t > value)."""
    from scipy.special import ndtr, stdtr

    return float(ndtr(-value) if np.isinf(freedom) else stdtr(freedom, -value))


def width(level: float, freedom: float) -> float:
    """Half of the interval that a t lies in with a probability of `level`."""
    from scipy.special import ndtri, stdtrit

    quantile = (1 + level) / 2
    return float(ndtri(quantile) if np.isinf(freedom) else stdtrit(freedom, quantile))

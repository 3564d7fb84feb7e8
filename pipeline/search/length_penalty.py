"""By how much the log-probability of a hypothesis is divided, so that long ones are not at a disadvantage."""

from typing import Literal

LengthNormalisation = Literal["gnmt", "length", "none"]


def length_penalty(length: int, alpha: float, normalisation: LengthNormalisation) -> float:
    """Divisor of the log-probability of a hypothesis of `length` symbols, EOS counted. Never falls with `length`.

    gnmt: ((5 + |Y|) / 6) ** alpha (Wu et al. 2016, eq. 14; Attention Is All You Need, section 6.1: alpha = 0.6).
    length: |Y| ** alpha, as fairseq has it; 1 ranks by the log-probability a symbol. none: 1.
    """
    match normalisation:
        case "gnmt":
            return ((5 + length) / 6) ** alpha
        case "length":
            return float(length**alpha)
        case "none":
            return 1.0
    raise ValueError(f"length_normalisation must be gnmt, length or none, got {normalisation!r}")

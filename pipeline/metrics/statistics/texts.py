"""The translation of a test set, as metrics of translations read it."""

from dataclasses import dataclass
from typing import Literal

from pipeline.metrics.statistics.metric import Inputs


@dataclass(frozen=True)
class Texts:
    """Hypotheses and references of one test set, line by line; one or more lists of references."""

    hypotheses: list[str]
    references: list[list[str]]


@dataclass(frozen=True)
class Translations(Inputs):
    """Of a test set: its texts, and what its dataset file says of how the paper counted."""

    folder = "scores"
    forms = ("sentences",)
    raw: Texts
    tokenised: Texts
    compound_split: bool = False
    nist: bool = False
    tgt: str = "en"
    tokeniser: str = "moses"
    case: Literal["mixed", "lc"] = "mixed"
    """Of tokenised text, on both sides."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import model_validator

from pipeline.analysis.claims.claim import Number
from pipeline.analysis.claims.scores import OfMeans
from pipeline.analysis.claims.terms import Scores, Term, as_term
from pipeline.analysis.evidence import Evidence, Sample, Scale, contrast
from pipeline.analysis.names import SystemName
from pipeline.metrics import metric_named


class LevelClaim(OfMeans):
    """A value is at least, or at most, so high; others' published number less a margin says "as good as published"."""

    kind: Literal["level"]
    term: SystemName | Term
    at_least: Number | None = None
    at_most: Number | None = None

    @model_validator(mode="after")
    def has_one_bound(self):
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("needs either at_least or at_most")
        return self

    @property
    def compared(self) -> list[Term]:
        return [as_term(self.term)]

    def baselines(self, scores: Scores) -> list[tuple[str, str]]:
        """The system, where it is said to be no better than the bound."""
        return [] if self.praises(scores) else [(self.compared[0].system, scores[self.score].dataset)]

    def favoured(self, scores: Scores) -> list[tuple[str, str]]:
        return [(self.compared[0].system, scores[self.score].dataset)] if self.praises(scores) else []

    def praises(self, scores: Scores) -> bool:
        return (self.at_least is not None) == (metric_named(scores[self.score].metric).sign > 0)

    def evidence(self, samples: Sequence[Sample], scale: Scale) -> list[Evidence]:
        (term,), (value,) = self.compared, samples
        sign, word, bound = (1, "above", self.at_least) if self.at_least is not None else (-1, "below", self.at_most)
        offset = -sign * float(scale(np.array(bound)))
        return [contrast(f"{term.label} {word} {bound:g}", [(sign, value)], offset, scale)]

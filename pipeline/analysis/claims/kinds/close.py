from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Number
from pipeline.analysis.claims.scores import OfMeans
from pipeline.analysis.claims.terms import Scores, Term, as_term, difference_name
from pipeline.analysis.evidence import Evidence, Sample, Scale, contrast
from pipeline.analysis.names import SystemName


class CloseClaim(OfMeans):
    """Two values differ by less than a margin, either way."""

    kind: Literal["close"]
    terms: list[SystemName | Term] = Field(min_length=2, max_length=2)
    margin: Number = Field(gt=0, description="Largest difference that still counts as none")

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in self.terms]

    def baselines(self, scores: Scores) -> list[tuple[str, str]]:
        return [(term.system, scores[self.score].dataset) for term in self.compared]

    def evidence(self, samples: Sequence[Sample], scale: Scale) -> list[Evidence]:
        name, (one, other) = difference_name(*self.compared), samples
        return [
            contrast(f"{self.margin:g} {word} ({name})", [(sign, one), (-sign, other)], self.margin, scale)
            for word, sign in (("plus", 1), ("less", -1))
        ]

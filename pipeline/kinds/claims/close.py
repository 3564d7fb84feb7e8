from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Number
from pipeline.kinds.claims.shared.scores import OfMeans
from pipeline.kinds.claims.shared.terms import Term, as_term, difference_name
from pipeline.kinds.evidence import Evidence, Sample, difference
from pipeline.kinds.names import SystemName


class CloseClaim(OfMeans):
    """Two values differ by less than a margin, either way."""

    kind: Literal["close"]
    terms: list[SystemName | Term] = Field(min_length=2, max_length=2)
    margin: Number = Field(gt=0, description="Largest difference that still counts as none")

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in self.terms]

    def evidence(self, samples: Sequence[Sample]) -> list[Evidence]:
        name, (one, other) = difference_name(*self.compared), samples
        return [
            difference(f"{self.margin:g} {word} ({name})", one, other, self.margin, sign)
            for word, sign in (("plus", 1), ("less", -1))
        ]

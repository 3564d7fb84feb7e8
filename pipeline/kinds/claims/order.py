from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Number
from pipeline.kinds.claims.shared.scores import OfMeans
from pipeline.kinds.claims.shared.terms import Term, as_term, difference_name
from pipeline.kinds.evidence import Evidence, Sample, difference
from pipeline.kinds.names import SystemName


class OrderClaim(OfMeans):
    """A metric rises from each term to the next."""

    kind: Literal["order"]
    ascending: list[SystemName | Term] = Field(min_length=2, description="Terms, the smallest value first")
    margin: Number = Field(
        default=0,
        description="How far a value may fall short of the one before; below 0: by how much it has to exceed it",
    )

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in self.ascending]

    def evidence(self, samples: Sequence[Sample]) -> list[Evidence]:
        steps = pairwise(zip(self.compared, samples, strict=True))
        return [
            difference(difference_name(larger, smaller), upper, lower, self.margin)
            for (smaller, lower), (larger, upper) in steps
        ]

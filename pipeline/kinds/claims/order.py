"""A metric rises from each term to the next."""

from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Number
from pipeline.kinds.claims.shared.findings import Findings
from pipeline.kinds.claims.shared.scores import (
    Term,
    UnderOneScore,
    as_term,
    difference_name,
    nothing_learned,
    term_means,
)
from pipeline.kinds.evidence import difference

if TYPE_CHECKING:
    from pipeline.kinds.claims.shared.measurements import Measurements


class OrderClaim(UnderOneScore):
    """A metric rises from each term to the next."""

    kind: Literal["order"]
    ascending: list[str | Term] = Field(min_length=2, description="Terms, the smallest value first")
    margin: Number = Field(
        default=0,
        description="How far a value may fall short of the one before; below 0: by how much it has to exceed it",
    )

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in self.ascending]

    def judge(self, measured: "Measurements") -> Findings:
        score = measured.scores[self.score]
        samples = [measured.sample(term, score) for term in self.compared]
        ours, test = term_means(self.compared, samples), measured.sentence_test(score)
        if nothing_learned(samples, score.metric):
            return Findings(f"{ours}: nothing was learned", [], test)
        steps = pairwise(zip(self.compared, samples, strict=True))
        evidence = [
            difference(difference_name(larger, smaller), upper, lower, self.margin)
            for (smaller, lower), (larger, upper) in steps
        ]
        return Findings(ours, evidence, test)

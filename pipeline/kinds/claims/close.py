"""Two values differ by less than a margin, either way."""

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


class CloseClaim(UnderOneScore):
    """Two values differ by less than a margin, either way."""

    kind: Literal["close"]
    terms: list[str | Term] = Field(min_length=2, max_length=2)
    margin: Number = Field(gt=0, description="Largest difference that still counts as none")

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in self.terms]

    def judge(self, measured: "Measurements") -> Findings:
        score = measured.scores[self.score]
        one, other = (measured.sample(term, score) for term in self.compared)
        ours, test = term_means(self.compared, [one, other]), measured.sentence_test(score)
        if nothing_learned([one, other], score.metric):
            return Findings(f"{ours}: nothing was learned", [], test)
        name = difference_name(*self.compared)
        evidence = [
            difference(f"{self.margin:g} {word} ({name})", one, other, self.margin, sign)
            for word, sign in (("plus", 1), ("less", -1))
        ]
        return Findings(ours, evidence, test)

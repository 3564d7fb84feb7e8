from typing import Literal

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Findings
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.scores import UnderOneScore
from pipeline.kinds.claims.shared.terms import Term, as_term
from pipeline.kinds.evidence import smaller_factor
from pipeline.kinds.names import SystemName


class RatioClaim(UnderOneScore):
    """A metric grows by a smaller factor from one term to another than from a third to a fourth."""

    kind: Literal["ratio"]
    smaller: list[SystemName | Term] = Field(min_length=2, max_length=2, description="From, to")
    larger: list[SystemName | Term] = Field(min_length=2, max_length=2, description="From, to")

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in (*self.smaller, *self.larger)]

    def judge(self, measured: Measurements) -> Findings:
        score = measured.scores[self.score]
        test = measured.sentence_test(score)
        a, b, c, d = (measured.sample(term, score) for term in self.compared)
        if any(not one.by_seed.all() for one in (a, b, c, d)):
            return Findings("a value is zero, of which there is no factor", [], test)
        first, second, third, fourth = (term.label for term in self.compared)
        ours = f"{first} to {second} x {b.mean / a.mean:.2f}, {third} to {fourth} x {d.mean / c.mean:.2f}"
        return Findings(ours, [smaller_factor("logarithm of both factors' ratio", (a, b), (c, d))], test)

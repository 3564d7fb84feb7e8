from dataclasses import replace
from typing import Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.scores import UnderOneScore
from pipeline.analysis.claims.terms import Scores, Term, as_term
from pipeline.analysis.evidence import smaller_factor
from pipeline.analysis.names import SystemName


class RatioClaim(UnderOneScore):
    """A metric grows by a smaller factor from one term to another than from a third to a fourth."""

    kind: Literal["ratio"]
    smaller: list[SystemName | Term] = Field(min_length=2, max_length=2, description="From, to")
    larger: list[SystemName | Term] = Field(min_length=2, max_length=2, description="From, to")

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in (*self.smaller, *self.larger)]

    def baselines(self, scores: Scores) -> list[tuple[str, str]]:
        return [(term.system, scores[self.score].dataset) for term in self.compared]

    def design(self, scores: Scores) -> tuple[str, str, list[str]] | None:
        return scores[self.score].metric, scores[self.score].dataset, [term.system for term in self.compared]

    def judge(self, measured: Measurements) -> Findings:
        """The quotients of the values are compared, so that their logarithms have to be alike in their noise."""
        samples = self.samples(measured)
        found = self.found(measured, samples, [smaller_factor(*samples)])
        if any(not one.by_seed.all() for one in samples):
            return replace(found, ours="a value is zero, of which there is no factor", evidence=[])
        first, second, third, fourth = (term.label for term in self.compared)
        a, b, c, d = (one.mean for one in samples)
        return replace(found, ours=f"{first} to {second} x {b / a:.2f}, {third} to {fourth} x {d / c:.2f}")

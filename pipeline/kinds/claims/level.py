from typing import Literal

from pipeline.kinds.claims.shared.claim import Findings, Number
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.scores import UnderOneScore, term_means
from pipeline.kinds.claims.shared.terms import Term, as_term
from pipeline.kinds.evidence import above
from pipeline.kinds.names import SystemName


class LevelClaim(UnderOneScore):
    """A value is at least so high."""

    kind: Literal["level"]
    term: SystemName | Term
    at_least: Number

    @property
    def compared(self) -> list[Term]:
        return [as_term(self.term)]

    def judge(self, measured: Measurements) -> Findings:
        score, (term,) = measured.scores[self.score], self.compared
        value = measured.sample(term, score)
        evidence = above(f"{term.label} above {self.at_least:g}", value, self.at_least)
        return Findings(term_means([term], [value]), [evidence], measured.sentence_test(score).removeprefix("paired "))

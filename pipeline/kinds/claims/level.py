"""A value is at least so high."""

from typing import TYPE_CHECKING, Literal

from pipeline.kinds.claims.shared.claim import Number
from pipeline.kinds.claims.shared.findings import Findings
from pipeline.kinds.claims.shared.scores import Term, UnderOneScore, as_term, term_means
from pipeline.kinds.evidence import above

if TYPE_CHECKING:
    from pipeline.kinds.claims.shared.measurements import Measurements


class LevelClaim(UnderOneScore):
    """A value is at least so high."""

    kind: Literal["level"]
    term: str | Term
    at_least: Number

    @property
    def compared(self) -> list[Term]:
        return [as_term(self.term)]

    def judge(self, measured: "Measurements") -> Findings:
        score, (term,) = measured.scores[self.score], self.compared
        value = measured.sample(term, score)
        evidence = above(f"{term.label} above {self.at_least:g}", value, self.at_least)
        return Findings(term_means([term], [value]), [evidence], measured.sentence_test(score).removeprefix("paired "))

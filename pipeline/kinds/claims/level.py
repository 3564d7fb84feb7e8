from typing import Literal

from pydantic import model_validator

from pipeline.kinds.claims.shared.claim import Findings, Number
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.scores import UnderOneScore, term_means
from pipeline.kinds.claims.shared.terms import Term, as_term
from pipeline.kinds.evidence import Sample, above
from pipeline.kinds.names import SystemName


class LevelClaim(UnderOneScore):
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

    def judge(self, measured: Measurements) -> Findings:
        score, (term,) = measured.scores[self.score], self.compared
        value, bound = measured.sample(term, score), self.at_least
        if bound is None:
            assert self.at_most is not None, "has_one_bound"
            below = Sample(-value.by_seed, -value.draws, value.test_set)
            evidence = above(f"{term.label} below {self.at_most:g}", below, -self.at_most)
        else:
            evidence = above(f"{term.label} above {bound:g}", value, bound)
        return Findings(term_means([term], [value]), [evidence], measured.sentence_test(score).removeprefix("paired "))

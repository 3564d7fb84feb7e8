from typing import Annotated, Literal

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Findings
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.scores import AboutScores
from pipeline.kinds.claims.shared.terms import Term, as_term, difference_name
from pipeline.kinds.evidence import difference
from pipeline.kinds.names import ScoreName, SystemName


class AgreementClaim(AboutScores):
    """Where one metric tells two systems apart, another ranks them the same way."""

    kind: Literal["agreement"]
    scores: list[ScoreName] = Field(
        min_length=2, max_length=2, description="Names under `scores`; the first one decides"
    )
    pairs: list[Annotated[list[SystemName | Term], Field(min_length=2, max_length=2)]] = Field(
        description="Pairs of terms"
    )

    @property
    def score_names(self) -> list[str]:
        return self.scores

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for pair in self.pairs for term in pair]

    def judge(self, measured: Measurements) -> Findings:
        """Only pairs that the first metric tells apart count: among equals there is no order to agree on."""
        first, second = (measured.scores[name] for name in self.scores)
        evidence, ours = [], []
        for one, other in ([as_term(term) for term in pair] for pair in self.pairs):
            name = difference_name(one, other)
            reference = difference("", measured.sample(one, first), measured.sample(other, first))
            compared = measured.sample(one, second), measured.sample(other, second)
            distinct = reference.low > 0 or reference.high < 0
            signs = f"{reference.value:+.2f} {first.metric}, {compared[0].mean - compared[1].mean:+.2f} {second.metric}"
            ours.append(f"{name}: {signs}" + ("" if distinct else " (not told apart)"))
            if distinct:
                sign = 1 if reference.value > 0 else -1
                evidence.append(difference(f"{name}, {second.metric}, {sign:+d} x", *compared, sign=sign))
        return Findings("; ".join(ours), evidence, measured.sentence_test(first))

from typing import Annotated, Literal, Self

from pydantic import Field

from pipeline.analysis.claims.claim import Findings
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.scores import RESAMPLED, AboutScores, untrained
from pipeline.analysis.claims.terms import Term, as_term, difference_name
from pipeline.analysis.evidence import Evidence, contrast
from pipeline.analysis.names import ScoreName, SystemName
from pipeline.metrics import metric_named


class AgreementClaim(AboutScores):
    """Where one metric shows a gain over another system, so does a second metric; every pair is judged alone."""

    kind: Literal["agreement"]
    scores: list[ScoreName] = Field(min_length=2, max_length=2, description="Names under `scores`; the first decides")
    pairs: list[Annotated[list[SystemName | Term], Field(min_length=2, max_length=2)]] = Field(
        description="Pairs of terms, the better one first"
    )

    @property
    def score_names(self) -> list[str]:
        return self.scores

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for pair in self.pairs for term in pair]

    def links(self) -> dict[str, Self]:
        return {f"-{n}": self.model_copy(update={"pairs": [pair]}) for n, pair in enumerate(self.pairs, start=1)}

    def judge(self, measured: Measurements) -> Findings:
        """Of one pair. Without a gain by the first metric there is nothing to agree on; with one, the other has to
        show one, too."""
        evidence: list[Evidence] = []
        terms, ours, missing = self.compared, [], ""
        for score in (measured.scores[name] for name in self.scores):
            metric, (one, other) = metric_named(score.metric), (measured.sample(term, score) for term in terms)
            weighted = [(metric.sign, one), (-metric.sign, other)]
            evidence.append(contrast(difference_name(*terms[:: metric.sign]), weighted, scale=metric.judged_as))
            ours.append(f"{one.mean - other.mean:+.2f} {score.metric}")
            missing = missing or untrained(measured, score, terms, [one, other])
        gain = evidence[0].low > 0
        return Findings(", ".join(ours) + ("" if gain else " (no gain)"), evidence[1:] * gain, RESAMPLED, missing)

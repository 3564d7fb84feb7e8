from typing import Annotated, Literal, Self

from pydantic import Field

from pipeline.kinds.claims.shared.claim import Findings
from pipeline.kinds.claims.shared.measurements import Measurements
from pipeline.kinds.claims.shared.scores import RESAMPLED, AboutScores, untrained
from pipeline.kinds.claims.shared.terms import Term, as_term, difference_name
from pipeline.kinds.evidence import contrast
from pipeline.kinds.names import ScoreName, SystemName


class AgreementClaim(AboutScores):
    """Where one metric shows a gain over another system, so does a second metric; every pair is judged alone."""

    kind: Literal["agreement"]
    scores: list[ScoreName] = Field(
        min_length=2, max_length=2, description="Names under `scores`; the first one decides"
    )
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
        return {
            f"-{number}": self.model_copy(update={"pairs": [pair]}) for number, pair in enumerate(self.pairs, start=1)
        }

    def judge(self, measured: Measurements) -> Findings:
        """Of one pair. Without a gain by the first metric there is nothing to agree on; with one, the other has to
        show one, too."""
        first, second = (measured.scores[name] for name in self.scores)
        terms = self.compared
        samples = [[measured.sample(term, score) for term in terms] for score in (first, second)]
        reference, found = (contrast(difference_name(*terms), [(1, one), (-1, other)]) for one, other in samples)
        gain = reference.low > 0
        ours = f"{reference.value:+.2f} {first.metric}, {found.value:+.2f} {second.metric}"
        missing = untrained(measured, first, terms, samples[0])
        return Findings(ours + ("" if gain else " (no gain)"), [found] * gain, RESAMPLED, missing)

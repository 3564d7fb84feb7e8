from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from pipeline.analysis.claims.claim import Chain, Number
from pipeline.analysis.claims.scores import OfMeans
from pipeline.analysis.claims.terms import Scores, Term, as_term, difference_name
from pipeline.analysis.evidence import Evidence, Sample, Scale, contrast
from pipeline.analysis.names import SystemName
from pipeline.metrics import metric_named


class OrderClaim(Chain, OfMeans):
    """A metric rises from each term to the next; every step is judged alone."""

    kind: Literal["order"]
    ascending: list[SystemName | Term] = Field(min_length=2, description="Terms, the smallest value first")
    margin: Number = Field(
        default=0,
        description="How far a value may fall short of the one before, of a perplexity in nats; below 0: by how much "
        "it has to exceed it",
    )
    equal_budgets: bool = Field(
        default=False, description="Says what is reached in some updates, so that no system has to be at its plateau"
    )

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in self.ascending]

    def baselines(self, scores: Scores) -> list[tuple[str, str]]:
        """Of two systems, the one that is said to be worse."""
        return self.worse_and_better(scores)[:1]

    def favoured(self, scores: Scores) -> list[tuple[str, str]]:
        return self.worse_and_better(scores)[1:]

    def worse_and_better(self, scores: Scores) -> list[tuple[str, str]]:
        score, systems = scores[self.score], [term.system for term in self.compared]
        worse_first = systems[:: metric_named(score.metric).sign]
        return [] if self.equal_budgets or len({*systems}) == 1 else [(one, score.dataset) for one in worse_first]

    def evidence(self, samples: Sequence[Sample], scale: Scale) -> list[Evidence]:
        (smaller, larger), (lower, upper) = self.compared, samples
        return [contrast(difference_name(larger, smaller), [(1, upper), (-1, lower)], self.margin, scale)]

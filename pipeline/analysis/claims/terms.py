"""What claims.yaml names: scores, and the systems that are compared under them."""

from collections.abc import Mapping

from pydantic import Field

from pipeline.analysis.names import DecodingName, SystemName
from pipeline.analysis.scored import ScoredSplits
from pipeline.core.schema import Closed


class NamedScore(ScoredSplits):
    """What is compared: a metric under one decoding."""

    decoding: DecodingName = Field(description="Named decoding of the paper that owns the system")


Scores = Mapping[str, NamedScore]
"""Those of a paper's claims.yaml, by name."""


class Term(Closed):
    """One side of a comparison."""

    system: SystemName = Field(description="`name`, or `paper/name` of another paper")
    decodings: list[DecodingName] = Field(default=[], description="Decodings, averaged, instead of the score's own")

    @property
    def label(self) -> str:
        return f"{self.system} ({' '.join(self.decodings)})" if self.decodings else self.system


def as_term(term: str | Term) -> Term:
    return Term(system=term) if isinstance(term, str) else term


def difference_name(larger: Term, smaller: Term) -> str:
    return f"{larger.label} less {smaller.label}"

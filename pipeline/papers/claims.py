"""The record of `workflow/papers/<paper>/claims.yaml`: what a paper says, as predicates over what was measured.

Each claim states what has to hold; none states what was found. Its kind is a file of pipeline/analysis/claims.
"""

from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

import pipeline.analysis.claims.kinds
from pipeline.analysis.claims.claim import Claim
from pipeline.analysis.claims.judged import Faults, Judged, judge_all
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.claims.pools import NotRun, Pools
from pipeline.analysis.claims.terms import NamedScore
from pipeline.analysis.discovery import kinds_in
from pipeline.analysis.names import Names
from pipeline.analysis.view import PaperView
from pipeline.core.schema import Closed, load_yaml, unknown, validate
from pipeline.papers.named import names_in

if TYPE_CHECKING:
    AnyClaim = Claim
else:
    AnyClaim = Annotated[reduce(or_, kinds_in(pipeline.analysis.claims.kinds, Claim)), Field(discriminator="kind")]


class Claims(Closed):
    """One paper's claims."""

    scores: dict[str, NamedScore] = Field(default={}, description="Scores that claims name")
    claims: dict[str, AnyClaim] = Field(description="By a short name")
    primary: list[str] = Field(
        default=[],
        max_length=5,
        description="Claims, named before any run, by which the paper stands or falls: they are judged together",
    )

    @model_validator(mode="after")
    def scores_fit(self):
        for name, claim in self.claims.items():
            try:
                claim.check(self.scores)
            except ValueError as error:
                raise ValueError(f"claims.{name}: {error}") from error
        return self

    @model_validator(mode="after")
    def primary_claims_are_trained(self):
        for name in self.primary:
            if fault := unknown(name, self.claims, "primary"):
                raise ValueError(fault)
            if self.claims[name].about != "trainings":
                raise ValueError(f"primary: {name} stands on no training")
            if self.claims[name].extra:
                raise ValueError(f"primary: {name} is ours, not the paper's")
        if len(set(self.primary)) < len(self.primary):
            raise ValueError("primary: a claim stands there twice")
        return self

    def judged(self, view: PaperView, faults: Faults = (NotRun,)) -> list[Judged]:
        """Every claim of the paper of `view`, chains link by link. faults: what makes one count as not run."""
        return judge_all(self.claims, self.primary, Measurements(view, self.scores, Pools(view, self.systems)), faults)

    @property
    def systems(self) -> tuple[str, ...]:
        """That claims name, whose trainings tell of the noise of their kinds."""
        return tuple(dict.fromkeys(one.name for one in names_in(self) if one.kind == Names.SYSTEM))

    @property
    def datasets(self) -> list[str]:
        """Those that the claims are about, as the papers name them."""
        named = [score.dataset for score in self.scores.values()]
        named += [dataset for claim in self.claims.values() for dataset in claim.datasets]
        return list(dict.fromkeys(named))


def load_claims(path: Path) -> Claims:
    """No claims where there is no file. Raises UserError on an unknown key, a bad value or an unknown score."""
    return validate(Claims, load_yaml(path), str(path)) if path.exists() else Claims(claims={})

"""Claims of a paper: the record of `workflow/papers/<paper>/claims.yaml`, and kinds of claims by their `kind`.

A claim states what has to hold as a predicate over measurements, never what was found. A new kind is a class derived
from `Claim` and a member of `AnyClaim`. Every dry run imports them, so they may import numpy, but neither torch nor a
library that computes scores.
"""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from pipeline.analysis.claims import inside_models, losses, sentence_lengths, without_training
from pipeline.analysis.claims.measurements import Measurements, NoisePools
from pipeline.analysis.claims.scores import AgreementClaim, CloseClaim, GapClaim, LevelClaim, OrderClaim, RatioClaim
from pipeline.analysis.claims.verdicts import ClaimResult, Faults, evaluate_claims
from pipeline.analysis.run_folders import NotRun, RunFolders
from pipeline.analysis.view import NamedScore
from pipeline.core.schema import Closed, load_yaml_as, unknown

AnyClaim = Annotated[
    AgreementClaim
    | losses.AlignmentClaim
    | sentence_lengths.BeyondTrainingClaim
    | inside_models.BranchesClaim
    | without_training.CheaperClaim
    | CloseClaim
    | losses.CurvesClaim
    | losses.EqualTimeClaim
    | without_training.ExponentClaim
    | GapClaim
    | inside_models.GateClaim
    | LevelClaim
    | sentence_lengths.LongSentencesClaim
    | OrderClaim
    | losses.OwnPlateausClaim
    | RatioClaim
    | losses.StepsClaim
    | without_training.TimeRatioClaim
    | without_training.ProvedClaim
    | losses.TrainingLossClaim,
    Field(discriminator="kind"),
]


class NotJudged(Closed):
    """A statement of a paper that no measurement here can decide."""

    statement: str = Field(description="Statement of the paper, in one sentence")
    printed: str = Field(description="Printed evidence, or the place of the statement")
    why: str = Field(description="Reason why it is not judged")


class Claims(Closed):
    """Claims of one paper."""

    scores: dict[str, NamedScore] = Field(default={}, description="Scores that claims refer to, by name")
    claims: dict[str, AnyClaim] = Field(description="Claims by a short name")
    not_judged: dict[str, NotJudged] = Field(
        default={}, description="Statements that can't be decided here, by a short name, each with the reason"
    )
    primary: list[str] = Field(
        default=[],
        max_length=5,
        description="Main claims, chosen before any run; their p-values are adjusted together",
    )

    @model_validator(mode="after")
    def scores_fit(self) -> Self:
        """Return the claims if their scores are known and fit.

        Raises:
            ValueError: A claim's score is unknown or does not fit it.
        """
        for name, claim in self.claims.items():
            try:
                claim.check(self.scores)
            except ValueError as error:
                raise ValueError(f"claims.{name}: {error}") from error
        return self

    @model_validator(mode="after")
    def primary_claims_are_trained(self) -> Self:
        """Return the claims if the primary ones are known, listed once, need training, and are the paper's.

        Raises:
            ValueError: One of these does not hold.
        """
        for name in self.primary:
            if fault := unknown(name, self.claims, "primary"):
                raise ValueError(fault)
            if self.claims[name].about != "trainings":
                raise ValueError(f"primary: {name} needs no training; name a claim about trainings")
            if self.claims[name].extra:
                raise ValueError(f"primary: {name} is an extra claim; name one that the paper makes")
        if len(set(self.primary)) < len(self.primary):
            raise ValueError("primary: a claim is listed twice; remove one")
        return self

    def evaluate(self, folders: RunFolders, faults: Faults = (NotRun,)) -> list[ClaimResult]:
        """Return one result for each claim of the paper, or for each link of a chain, in order."""
        measured = Measurements(folders, self.scores, NoisePools(folders.view, self.systems))
        return evaluate_claims(self.claims, self.primary, measured, faults)

    @property
    def systems(self) -> tuple[str, ...]:
        """Return the systems that claims name; run-to-run variance is pooled over them."""
        found = [
            name
            for claim in self.claims.values()
            for name in (*(term.system for term in claim.compared), *(system for system, _ in claim.trainings))
        ]
        return tuple(dict.fromkeys(found))

    @property
    def datasets(self) -> list[str]:
        """Return the datasets that the claims are about, as the papers name them."""
        named = [score.dataset for score in self.scores.values()]
        named += [dataset for claim in self.claims.values() for _, dataset in claim.trainings]
        return list(dict.fromkeys(named))


def load_claims(path: Path) -> Claims:
    """Return the claims of a paper with the scores that they refer to; a paper without the file has none.

    Raises:
        UserError: A key is unknown, a value is bad, or a score is unknown.
    """
    return load_yaml_as(Claims, path) if path.exists() else Claims(claims={})

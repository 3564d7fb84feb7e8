"""Kinds of claims, by the `kind` that claims.yaml gives.

A new kind is a class derived from `Claim` and a member of `AnyClaim`. Every dry run imports them, so they may import
numpy, but neither torch nor a library that counts scores.
"""

from typing import Annotated

from pydantic import Field

from pipeline.analysis.claims.inside_models import BranchesClaim, GateClaim
from pipeline.analysis.claims.losses import (
    AlignmentClaim,
    CurvesClaim,
    EqualTimeClaim,
    OwnPlateausClaim,
    StepsClaim,
    TrainingLossClaim,
)
from pipeline.analysis.claims.scores import AgreementClaim, CloseClaim, LevelClaim, OrderClaim, RatioClaim
from pipeline.analysis.claims.sentence_lengths import BeyondTrainingClaim, LongSentencesClaim
from pipeline.analysis.claims.without_training import CheaperClaim, ExponentClaim, ProvedClaim

AnyClaim = Annotated[
    AgreementClaim
    | AlignmentClaim
    | BeyondTrainingClaim
    | BranchesClaim
    | CheaperClaim
    | CloseClaim
    | CurvesClaim
    | EqualTimeClaim
    | ExponentClaim
    | GateClaim
    | LevelClaim
    | LongSentencesClaim
    | OrderClaim
    | OwnPlateausClaim
    | RatioClaim
    | StepsClaim
    | ProvedClaim
    | TrainingLossClaim,
    Field(discriminator="kind"),
]

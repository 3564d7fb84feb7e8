"""The records of `workflow/papers/<paper>/claims.yaml`: what a paper says, as predicates over what was measured.

Each kind of claim states what has to hold; none states what was found. Statements that need no training, because they
are identities of the model or of a formula, name the test that proves them.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.kinds.names import (
    DatasetName,
    DecodingName,
    LayerName,
    ScaleName,
    ScoreName,
    SystemName,
    TestName,
)
from pipeline.kinds.scored import ScoredSplit, ScoredSplits
from pipeline.schema import Closed, load_yaml, nearest, validate

Number = Annotated[float, Field(strict=False)]
WordKind = Literal["names", "rare_names", "idioms", "function_words"]
"""Of source words, see pipeline/reporting/gate_values.py."""


class Score(ScoredSplits):
    """What is compared: a metric under one decoding."""

    decoding: DecodingName = Field(description="Named decoding of the paper that owns the system")


class Term(Closed):
    """One side of a comparison."""

    system: SystemName = Field(description="`name`, or `paper/name` of another paper")
    decodings: list[DecodingName] = Field(default=[], description="Decodings, averaged, instead of the score's own")

    @property
    def label(self) -> str:
        return f"{self.system} ({' '.join(self.decodings)})" if self.decodings else self.system


class Statement(Closed):
    """What every claim has."""

    statement: str = Field(description="What the paper says, in one sentence")
    printed: str = Field(description="The evidence that it prints, or where it says so")
    scales: list[ScaleName] | None = Field(default=None, description="Scales at which it can be tested; null = all")


class OrderClaim(Statement):
    """A metric rises from each term to the next."""

    kind: Literal["order"]
    score: ScoreName = Field(description="Name under `scores`")
    ascending: list[SystemName | Term] = Field(min_length=2, description="Terms, the smallest value first")
    margin: Number = Field(
        default=0,
        description="How far a value may fall short of the one before; below 0: by how much it has to exceed it",
    )


class LevelClaim(Statement):
    """A value is at least so high."""

    kind: Literal["level"]
    score: ScoreName = Field(description="Name under `scores`")
    term: SystemName | Term
    at_least: Number


class CloseClaim(Statement):
    """Two values differ by less than a margin, either way."""

    kind: Literal["close"]
    score: ScoreName = Field(description="Name under `scores`")
    terms: list[SystemName | Term] = Field(min_length=2, max_length=2)
    margin: Number = Field(gt=0, description="Largest difference that still counts as none")


class RatioClaim(Statement):
    """A metric grows by a smaller factor from one term to another than from a third to a fourth."""

    kind: Literal["ratio"]
    score: ScoreName = Field(description="Name under `scores`")
    smaller: list[SystemName | Term] = Field(min_length=2, max_length=2, description="From, to")
    larger: list[SystemName | Term] = Field(min_length=2, max_length=2, description="From, to")


class AlignmentClaim(Statement):
    """The entropy of attention over speech, averaged over a training, is lower than another system's."""

    kind: Literal["alignment"]
    dataset: DatasetName
    system: SystemName
    baseline: SystemName
    split: Literal["dev", "test"] = "dev"


class AgreementClaim(Statement):
    """Where one metric tells two systems apart, another ranks them the same way."""

    kind: Literal["agreement"]
    scores: list[ScoreName] = Field(
        min_length=2, max_length=2, description="Names under `scores`; the first one decides"
    )
    pairs: list[list[SystemName | Term]] = Field(description="Pairs of terms")

    @model_validator(mode="after")
    def pairs_are_of_two(self):
        if any(len(pair) != 2 for pair in self.pairs):
            raise ValueError("each of pairs needs two terms")
        return self


class TrainingLossClaim(Statement):
    """Loss on training data at the end (nats, without smoothing and dropout) rises from each system to the next."""

    kind: Literal["training_loss"]
    dataset: DatasetName
    ascending: list[SystemName] = Field(min_length=2, description="Systems, the smallest loss first")


class StepsClaim(Statement):
    """A system reaches another's final dev loss within a share of the other's steps."""

    kind: Literal["steps"]
    dataset: DatasetName
    system: SystemName
    baseline: SystemName
    share: Number = Field(gt=0, description="Of the baseline's steps")


class CurvesClaim(Statement):
    """At equal training loss, a system's dev loss is lower than another's."""

    kind: Literal["curves"]
    dataset: DatasetName
    system: SystemName
    baseline: SystemName


class BranchesClaim(Statement):
    """A property of kappa and of alpha in an encoder layer over a training."""

    kind: Literal["branches"]
    dataset: DatasetName
    system: SystemName
    layer: Annotated[int, Field(ge=1)] = Field(description="Encoder layer; the last one where there are fewer")
    quantity: Literal["spread", "changes_of_rank", "smallest_share"] = Field(
        description="Largest over smallest weight at the end; pairs that change order after the warm-up; smallest "
        "weight at the end as a share of 1/M"
    )
    at_least: Number
    at_most: Number | None = None


class LongSentencesClaim(Statement):
    """On long sentences a system's advantage is at least as large as on all."""

    kind: Literal["long_sentences"]
    score: ScoreName = Field(description="Name under `scores`; the sentences of all its splits are scored as one set")
    system: SystemName
    baseline: SystemName
    longer_than: Annotated[int, Field(ge=1)] = Field(description="Source words")


class GateClaim(Statement):
    """The gate between two channels has another mean over one kind of source words than over another, in all
    test sets of the grammar."""

    kind: Literal["gate_values"]
    dataset: DatasetName
    system: SystemName
    channel: Literal["rnn", "emb"] = Field(description="Weighed by 1 - z, against the channels before it by z")
    words: Annotated[list[WordKind], Field(min_length=2, max_length=2)] = Field(description="Kinds of source words")
    direction: Literal["rising", "either"] = Field(
        description="rising: z is larger over the second kind; either: it differs"
    )
    margin: Number = Field(default=0, ge=0, description="What the difference has to exceed")


class BeyondTrainingClaim(Statement):
    """On sentences longer than any in training, a system's perplexity grows by a smaller factor than another's."""

    kind: Literal["beyond_training"]
    score: ScoreName = Field(description="Name under `scores`: a perplexity of several splits")
    longer: ScoredSplit = Field(description="The one of its splits that has the longer sentences")
    system: SystemName
    baseline: SystemName


class EqualTimeClaim(Statement):
    """After as much time of training, a system's dev loss is lower than another's."""

    kind: Literal["equal_time"]
    dataset: DatasetName
    system: SystemName
    baseline: SystemName


class ExponentClaim(Statement):
    """Time of a layer grows as a power of the sequence length or the width, with an exponent in a range."""

    kind: Literal["exponent"]
    layer: LayerName = Field(description="Layer type, as in the measurement")
    variable: Literal["n", "d"] = Field(description="Sequence length or width")
    at_least: Number
    at_most: Number


class CheaperClaim(Statement):
    """A layer takes less time than another wherever the sequence is shorter than the width."""

    kind: Literal["cheaper_below_width"]
    layer: LayerName
    than: LayerName


class ProvedClaim(Statement):
    """A statement that needs no training."""

    kind: Literal["test"]
    tests: list[TestName] = Field(min_length=1, description="file::name of the tests that prove it")


Claim = Annotated[
    OrderClaim
    | LevelClaim
    | CloseClaim
    | RatioClaim
    | AlignmentClaim
    | AgreementClaim
    | TrainingLossClaim
    | StepsClaim
    | CurvesClaim
    | BranchesClaim
    | LongSentencesClaim
    | GateClaim
    | BeyondTrainingClaim
    | EqualTimeClaim
    | ExponentClaim
    | CheaperClaim
    | ProvedClaim,
    Field(discriminator="kind"),
]


class Claims(Closed):
    """One paper's claims."""

    scores: dict[str, Score] = Field(default={}, description="Scores that claims name")
    claims: dict[str, Claim] = Field(description="By a short name")

    @model_validator(mode="after")
    def scores_exist(self):
        for name, claim in self.claims.items():
            for score in scores_of(claim):
                if score not in self.scores:
                    there = f"there are {', '.join(self.scores)}{nearest(score, self.scores)}"
                    raise ValueError(f"claims.{name}: no score {score!r}; {there}")
            if isinstance(claim, BeyondTrainingClaim):
                score = self.scores[claim.score]
                if score.metric != "perplexity" or claim.longer not in score.splits or len(score.splits) < 2:
                    raise ValueError(f"claims.{name}: needs a perplexity of {claim.longer} and of other splits")
        return self


def scores_of(claim: Claim) -> list[str]:
    """Names of the scores that a claim compares."""
    match claim:
        case OrderClaim() | LevelClaim() | CloseClaim() | RatioClaim() | LongSentencesClaim() | BeyondTrainingClaim():
            return [claim.score]
        case AgreementClaim():
            return claim.scores
    return []


def terms_of(claim: Claim) -> list[Term]:
    """What a claim about scores compares."""
    match claim:
        case OrderClaim():
            return [as_term(term) for term in claim.ascending]
        case LevelClaim():
            return [as_term(claim.term)]
        case CloseClaim():
            return [as_term(term) for term in claim.terms]
        case RatioClaim():
            return [as_term(term) for term in (*claim.smaller, *claim.larger)]
        case AgreementClaim():
            return [as_term(term) for pair in claim.pairs for term in pair]
        case LongSentencesClaim() | BeyondTrainingClaim():
            return [as_term(claim.system), as_term(claim.baseline)]
    return []


def systems_of(claim: Claim) -> list[str]:
    """Systems whose trainings a claim looks at, whatever they score."""
    match claim:
        case TrainingLossClaim():
            return claim.ascending
        case StepsClaim() | CurvesClaim() | EqualTimeClaim() | AlignmentClaim():
            return [claim.system, claim.baseline]
        case BranchesClaim() | GateClaim():
            return [claim.system]
    return []


def datasets_of(claims: Claims) -> list[str]:
    """Datasets that a paper's claims are about, as the papers name them."""
    named = [score.dataset for score in claims.scores.values()]
    named += [claim.dataset for claim in claims.claims.values() if systems_of(claim)]
    return list(dict.fromkeys(named))


def as_term(term: str | Term) -> Term:
    return Term(system=term) if isinstance(term, str) else term


def load_claims(path: Path) -> Claims:
    """No claims where there is no file. Raises UserError on an unknown key, a bad value or an unknown score."""
    return validate(Claims, load_yaml(path), str(path)) if path.exists() else Claims(claims={})

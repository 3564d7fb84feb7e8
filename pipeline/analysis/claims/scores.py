"""Claims about scores on whole test sets: order, closeness, level, ratio, and agreement of two metrics."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from pipeline.analysis.claims.claim import RESAMPLED, Claim, Findings, chain_links, distinct
from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.evidence import Evidence, Sample, Scale, contrast, smaller_factor
from pipeline.analysis.reference_types import ScoreName, SystemName
from pipeline.analysis.training_curves import System
from pipeline.analysis.view import Scores, Term, as_term, difference_name
from pipeline.core.schema import Number
from pipeline.metrics import metric_named

Terms = Annotated[list[SystemName | Term], AfterValidator(distinct)]
"""Terms that are compared, so none is listed twice."""


class ScoreClaim(Claim):
    """A claim that compares terms under one score."""

    score: ScoreName = Field(description="Name under `scores`")

    @property
    def score_names(self) -> list[str]:
        return [self.score]

    def trained_on(self, scores: Scores, terms: Sequence[Term]) -> list[System]:
        """Return the terms' systems, each with the dataset of the score."""
        return [(term.system, scores[self.score].dataset) for term in terms]

    def design(self, scores: Scores) -> tuple[str, str, list[str]] | None:
        systems = [term.system for term in self.compared]
        return scores[self.score].metric, scores[self.score].dataset, list(dict.fromkeys(systems))

    @abstractmethod
    def evidence(self, samples: Sequence[Sample], scale: Scale) -> list[Evidence]:
        """Turn the samples of the terms into quantities that are positive if the claim is true."""

    def evaluate(self, measured: Measurements) -> Findings:
        """Compare the terms by a paired bootstrap over sentences."""
        score = measured.scores[self.score]
        samples = [measured.sample(term, score) for term in self.compared]
        means = zip(self.compared, samples, strict=True)
        ours = ", ".join(f"{term.label} {sample.mean:.2f}" for term, sample in means)
        evidence = self.evidence(samples, metric_named(score.metric).comparison_scale)
        found = Findings(ours, evidence, RESAMPLED, measured.below_score_floor(score, self.compared, samples))
        return self.reworded(found, samples)

    def reworded(self, found: Findings, samples: Sequence[Sample]) -> Findings:
        """Return the findings in words that fit the kind."""
        return found


class OrderClaim(ScoreClaim):
    """A metric rises from each term to the next. Each pair of neighbours is tested separately."""

    kind: Literal["order"]
    ascending: Terms = Field(min_length=2, description="Terms, the smallest value first")
    margin: Number = Field(
        default=0,
        description="Tolerated shortfall from one value to the next (perplexity: in nats); negative = required excess",
    )
    equal_budgets: bool = Field(
        default=False,
        description="Compare systems after the same number of steps, so that none has to be at its plateau",
    )
    winner_has_enough_steps: bool = Field(
        default=False,
        description="The claim is that more steps do not help the better system, so that it may be contradicted while "
        "it still learns",
    )

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in self.ascending]

    def links(self) -> dict[str, Claim]:
        return chain_links(self, self.ascending)

    def baselines(self, scores: Scores) -> list[System]:
        """Return the expected loser; none if it is another decoding of the winner's own trainings."""
        loser, *winners = self.ordered_systems(scores)
        return [] if self.equal_budgets or {loser} == {*winners} else [loser]

    def expected_winner(self, scores: Scores) -> list[System]:
        return [] if self.equal_budgets or self.winner_has_enough_steps else self.ordered_systems(scores)[1:]

    def ordered_systems(self, scores: Scores) -> list[System]:
        """Return the systems, expected loser first."""
        return self.trained_on(scores, self.compared)[:: metric_named(scores[self.score].metric).sign]

    def evidence(self, samples: Sequence[Sample], scale: Scale) -> list[Evidence]:
        (smaller, larger), (lower, upper) = self.compared, samples
        return [contrast(difference_name(larger, smaller), [(1, upper), (-1, lower)], self.margin, scale)]


class CloseClaim(ScoreClaim):
    """Two values differ by less than a margin, either way."""

    kind: Literal["close"]
    terms: Terms = Field(min_length=2, max_length=2)
    margin: Number = Field(gt=0, description="Difference that values have to stay below (perplexity: in nats)")

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in self.terms]

    def baselines(self, scores: Scores) -> list[System]:
        return self.trained_on(scores, self.compared)

    def evidence(self, samples: Sequence[Sample], scale: Scale) -> list[Evidence]:
        name, (first, other) = difference_name(*self.compared), samples
        return [
            contrast(f"{self.margin:g} {word} ({name})", [(sign, first), (-sign, other)], self.margin, scale)
            for word, sign in (("plus", 1), ("less", -1))
        ]


class LevelClaim(ScoreClaim):
    """A value is above or below a bound; a published number less a margin tests "as good as published"."""

    kind: Literal["level"]
    term: SystemName | Term
    at_least: Number | None = None
    at_most: Number | None = None

    @model_validator(mode="after")
    def has_one_bound(self) -> Self:
        """Return the claim if it has one bound.

        Raises:
            ValueError: It has neither `at_least` nor `at_most`, or both.
        """
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("needs either at_least or at_most")
        return self

    @property
    def compared(self) -> list[Term]:
        return [as_term(self.term)]

    def baselines(self, scores: Scores) -> list[System]:
        return [] if self.is_lower_bound(scores) else self.trained_on(scores, self.compared)

    def expected_winner(self, scores: Scores) -> list[System]:
        return self.trained_on(scores, self.compared) if self.is_lower_bound(scores) else []

    def is_lower_bound(self, scores: Scores) -> bool:
        """Return whether the claim is that the system is at least as good as the bound."""
        return (self.at_least is not None) == (metric_named(scores[self.score].metric).sign > 0)

    def evidence(self, samples: Sequence[Sample], scale: Scale) -> list[Evidence]:
        (term,), (value,) = self.compared, samples
        sign, word, bound = (1, "above", self.at_least) if self.at_least is not None else (-1, "below", self.at_most)
        offset = -sign * float(scale(np.array(bound)))
        return [contrast(f"{term.label} {word} {bound:g}", [(sign, value)], offset, scale)]


class RatioClaim(ScoreClaim):
    """A metric grows by a smaller factor from one term to another than between two other terms."""

    kind: Literal["ratio"]
    smaller: Terms = Field(
        min_length=2, max_length=2, description="Terms between which the metric grows by the smaller factor: from, to"
    )
    larger: Terms = Field(
        min_length=2, max_length=2, description="Terms between which it grows by the larger factor: from, to"
    )

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in (*self.smaller, *self.larger)]

    def baselines(self, scores: Scores) -> list[System]:
        return self.trained_on(scores, self.compared)

    def design(self, scores: Scores) -> tuple[str, str, list[str]] | None:
        return scores[self.score].metric, scores[self.score].dataset, [term.system for term in self.compared]

    def evidence(self, samples: Sequence[Sample], scale: Scale) -> list[Evidence]:
        return [smaller_factor(*samples)] if all(sample.by_seed.all() for sample in samples) else []

    def reworded(self, found: Findings, samples: Sequence[Sample]) -> Findings:
        if not found.evidence:
            return replace(found, ours="a value is zero, so there is no factor")
        first, second, third, fourth = (term.label for term in self.compared)
        a, b, c, d = (sample.mean for sample in samples)
        return replace(found, ours=f"{first} to {second} x {b / a:.2f}, {third} to {fourth} x {d / c:.2f}")


class GapClaim(ScoreClaim):
    """Share of the gap between the error rates of two systems that another leaves: (term - best) / (worst - best)."""

    kind: Literal["gap"]
    term: SystemName | Term
    worst: SystemName | Term = Field(description="System that leaves the whole gap")
    best: SystemName | Term = Field(description="System that leaves none")
    at_most: Number = Field(gt=0, lt=1, description="Largest share of the gap")

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for term in (self.term, self.worst, self.best)]

    def baselines(self, scores: Scores) -> list[System]:
        return self.trained_on(scores, self.compared[1:])

    def expected_winner(self, scores: Scores) -> list[System]:
        return self.trained_on(scores, self.compared[:1])

    def design(self, scores: Scores) -> tuple[str, str, list[str]] | None:
        """Return None: a share of a gap is no difference between two systems."""
        return None

    def evidence(self, samples: Sequence[Sample], scale: Scale) -> list[Evidence]:
        """Test that there is a gap, and that the term leaves at most the given share of it, whatever the scale."""
        term, worst, best = samples
        left = [(self.at_most, worst), (1 - self.at_most, best), (-1, term)]
        return [
            contrast("the gap", [(1, worst), (-1, best)]),
            contrast(f"{self.at_most:.1%} of the gap − what is left", left),
        ]

    def check(self, scores: Scores) -> None:
        """Check that the score is an error rate.

        Raises:
            ValueError: A score is unknown, or rises as a system gets better.
        """
        super().check(scores)
        if metric_named(scores[self.score].metric).sign > 0:
            raise ValueError(f"score {self.score!r} is not an error rate, which falls as a system gets better")

    def reworded(self, found: Findings, samples: Sequence[Sample]) -> Findings:
        term, worst, best = (sample.mean for sample in samples)
        left = f"{(term - best) / (worst - best):.1%} of the gap left" if worst != best else "there is no gap"
        return replace(found, ours=f"{left} ({found.ours})")


class AgreementClaim(Claim):
    """A second metric shows a gain over another system if the first does. Each pair is tested separately."""

    kind: Literal["agreement"]
    scores: list[ScoreName] = Field(min_length=2, max_length=2, description="Names under `scores`; the first decides")
    pairs: list[Annotated[Terms, Field(min_length=2, max_length=2)]] = Field(
        description="Pairs of terms, the better one first"
    )

    @property
    def score_names(self) -> list[str]:
        return self.scores

    @property
    def compared(self) -> list[Term]:
        return [as_term(term) for pair in self.pairs for term in pair]

    def links(self) -> dict[str, Claim]:
        return {f"-{n}": self.model_copy(update={"pairs": [pair]}) for n, pair in enumerate(self.pairs, start=1)}

    def evaluate(self, measured: Measurements) -> Findings:
        """Evaluate one pair; the second metric is tested only if the first shows a gain.

        Returns:
            The gain by the second metric; no evidence if the first shows none.
        """
        evidence: list[Evidence] = []
        terms, ours, missing = self.compared, [], ""
        for score in (measured.scores[name] for name in self.scores):
            metric, (first, other) = metric_named(score.metric), (measured.sample(term, score) for term in terms)
            weighted = [(metric.sign, first), (-metric.sign, other)]
            evidence.append(contrast(difference_name(*terms[:: metric.sign]), weighted, scale=metric.comparison_scale))
            ours.append(f"{first.mean - other.mean:+.2f} {score.metric}")
            missing = missing or measured.below_score_floor(score, terms, [first, other])
        gain = evidence[0].low > 0
        return Findings(", ".join(ours) + ("" if gain else " (no gain)"), evidence[1:] * gain, RESAMPLED, missing)

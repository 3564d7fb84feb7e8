"""Base class of all claims, and the findings on one of them."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Literal

from pydantic import Field

from pipeline.analysis.claims.measurements import Measurements
from pipeline.analysis.evidence import Evidence
from pipeline.analysis.reference_types import ScaleName
from pipeline.analysis.run_folders import NotRun
from pipeline.analysis.training_curves import System
from pipeline.analysis.view import PaperView, Scores, Term, as_term
from pipeline.core.artifacts import Artifact
from pipeline.core.schema import Closed, nearest

RESAMPLED = "paired bootstrap over sentences"
"""Test of claims about scores, in words."""


@dataclass(frozen=True)
class Findings:
    """Quantities that are positive if a claim is true, and how they were tested."""

    ours: str
    """Our numbers as a reader sees them."""
    evidence: list[Evidence]
    test: str
    not_trained: str = ""
    """Names the systems that have not learnt enough for the quantities to mean anything; empty if all have."""
    still_learning: str = ""
    """Names a system that more steps could bring to what is claimed, so that nothing is contradicted; empty if none."""

    @property
    def test_description(self) -> str:
        """Describe the test: the unit that was resampled, and the source of the run-to-run variance."""
        noise = dict.fromkeys(f"run-to-run variance {effect.noise}" for effect in self.evidence if effect.noise)
        return "; ".join(filter(None, (self.test, *noise)))

    @property
    def p_values(self) -> list[float]:
        """Return the one-sided p-values that are known."""
        return [effect.p_value for effect in self.evidence if effect.p_value is not None]

    @property
    def p_upheld(self) -> float:
        """Return the one-sided p-value of the claim: all quantities have to be positive (intersection-union test)."""
        return max(self.p_values)

    @property
    def p_contradicted(self) -> float:
        """Return the one-sided p-value of its opposite: one negative quantity is enough (Bonferroni)."""
        return min(1.0, len(self.evidence) * min(1 - p for p in self.p_values))

    @property
    def favours_claim(self) -> bool:
        """Return whether the evidence is for the claim rather than against it."""
        return self.p_upheld <= self.p_contradicted

    @property
    def p_value(self) -> float | None:
        """Return the two-sided p-value; None if there is no evidence or an error is unknown."""
        if not self.evidence or len(self.p_values) < len(self.evidence):
            return None
        return min(1.0, 2 * min(self.p_upheld, self.p_contradicted))


def distinct(terms: list[Any]) -> list[Any]:
    """Refuse a term that is listed twice, because its difference from itself is nothing to test."""
    labels = [as_term(term).label for term in terms]
    if twice := [label for place, label in enumerate(labels) if label in labels[:place]]:
        raise ValueError(f"lists {twice[0]} twice; name different terms")
    return terms


def of_two_systems(claim: Any) -> Any:
    """Refuse a claim whose baseline is the system itself, for the same reason."""
    distinct([claim.system, claim.baseline])
    return claim


class Claim(Closed):
    """A statement of a paper as a predicate over measurements.

    A kind overrides `evaluate` and names what it compares: terms under named scores, or trainings of some systems.
    """

    about: ClassVar[Literal["trainings", "layers", "identity"]] = "trainings"

    statement: str = Field(description="Statement of the paper, in one sentence")
    printed: str = Field(description="Printed evidence, or the place of the statement")
    extra: bool = Field(default=False, description="Whether it is ours rather than the paper's")
    scales: list[ScaleName] | None = Field(default=None, description="Scales at which it can be tested; null = all")

    @property
    def full_statement(self) -> str:
        """Return the statement, marked if it is not the paper's."""
        return f"{self.statement} (Ours: the paper does not say so.)" if self.extra else self.statement

    @property
    def score_names(self) -> list[str]:
        """Return the names of the scores under which it compares terms."""
        return []

    @property
    def compared(self) -> list[Term]:
        """Return the terms that it compares."""
        return []

    @property
    def trainings(self) -> list[System]:
        """Return the systems and datasets whose trainings it compares; their dev perplexity has to pass its floor."""
        return []

    def baselines(self, scores: Scores) -> list[System]:
        """Return the systems that must have reached their plateau for the claim to be fair to them."""
        return []

    def expected_winner(self, scores: Scores) -> list[System]:
        """Return the systems that must have reached their plateau before the claim can be contradicted."""
        return []

    def design(self, scores: Scores) -> tuple[str, str, list[str]] | None:
        """Return quantity, dataset and systems if run-to-run variance of a difference between systems decides."""
        return None

    def check(self, scores: Scores) -> None:
        """Check the names of scores.

        Raises:
            ValueError: A score is unknown or does not fit.
        """
        for name in self.score_names:
            if name not in scores:
                raise ValueError(f"no score {name!r}; there are {', '.join(scores)}{nearest(name, scores)}")

    def links(self) -> dict[str, "Claim"]:
        """Return the claims that it consists of, which are evaluated one by one, by the suffix of their names."""
        return {"": self}

    def is_tested(self, scale: str) -> bool:
        """Return whether it can be tested at a scale."""
        return self.scales is None or scale in self.scales

    def needs(self, view: PaperView, scores: Scores) -> Iterator[Artifact]:
        """Yield all artifacts from which it is evaluated, including every training."""
        for system, dataset in self.trainings:
            yield from view.trained([system], dataset)
        for score in (scores[name] for name in self.score_names):
            for term in self.compared:
                runs = view.runs(term.system, score.dataset)
                yield from view.scored(runs, score, term.decodings or [score.decoding])

    @abstractmethod
    def evaluate(self, measured: Measurements) -> Findings:
        """Turn measurements into evidence.

        Returns:
            Quantities that are positive if the claim is true, and how they were tested.

        Raises:
            NotRun: Something is missing; the message names it.
        """

    def findings(self, measured: Measurements) -> Findings:
        """Evaluate the claim if it can be tested at this scale, and check the dev perplexity of its trainings.

        Returns:
            The findings; `not_trained` also names systems whose dev perplexity is above its floor.

        Raises:
            NotRun: It cannot be tested, or something is missing.
        """
        if self.scales is not None and not self.is_tested(measured.view.layout.scale):
            raise NotRun(f"can be tested at scale {', '.join(self.scales)} only")
        found = self.evaluate(measured)
        return replace(found, not_trained=measured.above_perplexity_floor(self.trainings) or found.not_trained)


def chain_links(claim: Claim, ascending: list[Any]) -> dict[str, Claim]:
    """Split a claim about an ordered list into one claim for each pair of neighbours.

    Returns:
        Claims by the suffix of their names: `-1`, `-2`, …; of two items, the claim itself without a suffix.
    """
    if len(ascending) == 2:
        return {"": claim}
    steps = pairwise(ascending)
    return {f"-{n}": claim.model_copy(update={"ascending": [*step]}) for n, step in enumerate(steps, start=1)}
